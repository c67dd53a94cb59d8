// One thread per output: each walks a row of A and a column of B. x counts rows.

extern "C" __global__ void naive(const float *A, const float *B, float *C, int M, int N, int K)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N) {
        float total = 0;
        for (int k = 0; k < K; ++k)
            total += A[row * K + k] * B[k * N + col];
        C[row * N + col] = total;
    }
}
