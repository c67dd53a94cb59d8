"""Convolutions as one calls them: `forward`, `backward_data`, `backward_filter`, and which algorithm computes them."""
