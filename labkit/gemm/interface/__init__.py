"""`gemm.multiply` and `gemm.tune`: alpha * op(A) @ op(B) + beta * C for any arrays, by the kernels of the ladders."""
