// A block loads a tile of A and a tile of B into shared memory, and each thread uses TILE values of both.

constexpr int TILE = 16;

extern "C" __global__ void tiled(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float A_tile[TILE][TILE];
    __shared__ float B_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int col = blockIdx.x * TILE + x;
    int row = blockIdx.y * TILE + y;

    float total = 0;
    for (int start = 0; start < K; start += TILE) {
        A_tile[y][x] = row < M && start + x < K ? A[row * K + start + x] : 0;
        B_tile[y][x] = start + y < K && col < N ? B[(start + y) * N + col] : 0;
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            total += A_tile[y][k] * B_tile[k][x];
        __syncthreads();
    }

    if (row < M && col < N)
        C[row * N + col] = total;
}
