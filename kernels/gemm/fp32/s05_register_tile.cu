// Each thread computes TM x TN outputs in registers: TM + TN shared loads for TM * TN multiply-adds.

constexpr int BM = 128, BN = 128, BK = 8;  // a block's part of C, and its steps along K
constexpr int TM = 8, TN = 8;              // outputs of a thread
constexpr int COLUMNS = BN / TN, ROWS = BM / TM;
constexpr int THREADS = COLUMNS * ROWS;

extern "C" __global__ void register_tile(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float A_tile[BM][BK];
    __shared__ float B_tile[BK][BN];
    float sums[TM][TN] = {}, a[TM], b[TN];
    int x = threadIdx.x, y = threadIdx.y;
    int top = blockIdx.y * BM, left = blockIdx.x * BN;
    int t = y * COLUMNS + x;

    for (int start = 0; start < K; start += BK) {
        for (int first = 0; first < BM; first += THREADS / BK) {
            int row = first + t / BK, k = t % BK;
            A_tile[row][k] = top + row < M && start + k < K ? A[(top + row) * K + start + k] : 0;
        }
        for (int first = 0; first < BK; first += THREADS / BN) {
            int k = first + t / BN, col = t % BN;
            B_tile[k][col] = start + k < K && left + col < N ? B[(start + k) * N + left + col] : 0;
        }
        __syncthreads();
        for (int k = 0; k < BK; ++k) {
            for (int i = 0; i < TM; ++i)
                a[i] = A_tile[y + i * ROWS][k];
            for (int j = 0; j < TN; ++j)
                b[j] = B_tile[k][x + j * COLUMNS];
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j)
                    sums[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            int row = top + y + i * ROWS, col = left + x + j * COLUMNS;
            if (row < M && col < N)
                C[row * N + col] = sums[i][j];
        }
}
