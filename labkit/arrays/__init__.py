"""Device arrays: addresses, views under other shapes and strides, and workspace."""
