"""C = A @ B in float32, one idea a step."""
