"""The lockstep simulator: runs a `numba.cuda` kernel on NumPy arrays, all lanes of many blocks at a time."""
