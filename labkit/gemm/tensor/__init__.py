"""C = A @ B.T on tensor cores, one idea a step: bfloat16, float16 and e4m3, sums in float32.

B holds a row for each column of C, as a layer's weights do: both operands are then read along k. To the tensor cores a
format is only a way to cut 32 bytes of k into numbers, so the kernels see bytes, and `FORMAT` says what they mean.
"""
