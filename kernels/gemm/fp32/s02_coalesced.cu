// One thread per output, and neighbouring threads side by side in a row. x counts columns.

extern "C" __global__ void coalesced(const float *A, const float *B, float *C, int M, int N, int K)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N) {
        float total = 0;
        for (int k = 0; k < K; ++k)
            total += A[row * K + k] * B[k * N + col];
        C[row * N + col] = total;
    }
}
