// A warp multiplies 16 x 16 by 16 x 8 in one instruction: the tensor cores, fed from shared memory word by word.

constexpr int BM = 128, BN = 128;
constexpr int BK = 32;   // words of k that a block takes at a time, 128 bytes
constexpr int STEP = 8;  // words of k that an instruction takes
constexpr int WM = 64, WN = 32;
constexpr int MI = WM / 16, NI = WN / 8;
constexpr int WARPS_X = BN / WN, WARPS = BM / WM * WARPS_X;
constexpr int ROWS = 32 * WARPS / 8;

__device__ uint4 load_four(const unsigned *X, int rows, int words, int row, int word)
{
    if (row < rows && word < words)
        return *reinterpret_cast<const uint4 *>(X + size_t(row) * words + word);
    return make_uint4(0, 0, 0, 0);
}

__device__ unsigned pack2(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(low), "f"(high));
    return both;
}

// A, B and C as words of two bfloat16; K counts words.
extern "C" __global__ void mma(const unsigned *A, const unsigned *B, unsigned *C, int M, int N, int K)
{
    __shared__ alignas(16) unsigned A_tile[BM][BK], B_tile[BN][BK];
    float sums[MI][NI][4] = {};
    int lane = threadIdx.x, warp = threadIdx.y;
    int top = blockIdx.y * BM, left = blockIdx.x * BN;
    int y = warp / WARPS_X * WM, x = warp % WARPS_X * WN;
    int g = lane / 4, t = lane % 4;
    int thread = warp * 32 + lane;
    int copy_row = thread / 8, copy_word = thread % 8 * 4;

    for (int k = 0; k < K; k += BK) {
        for (int i = 0; i < BM / ROWS; ++i) {
            int row = copy_row + i * ROWS;
            *reinterpret_cast<uint4 *>(&A_tile[row][copy_word]) = load_four(A, M, K, top + row, k + copy_word);
        }
        for (int i = 0; i < BN / ROWS; ++i) {
            int row = copy_row + i * ROWS;
            *reinterpret_cast<uint4 *>(&B_tile[row][copy_word]) = load_four(B, N, K, left + row, k + copy_word);
        }
        __syncthreads();
        for (int step = 0; step < BK; step += STEP) {
            unsigned a[MI][4], b[NI][2];
            for (int i = 0; i < MI; ++i) {
                int row = y + i * 16 + g;
                a[i][0] = A_tile[row][step + t], a[i][1] = A_tile[row + 8][step + t];
                a[i][2] = A_tile[row][step + t + 4], a[i][3] = A_tile[row + 8][step + t + 4];
            }
            for (int j = 0; j < NI; ++j) {
                int row = x + j * 8 + g;
                b[j][0] = B_tile[row][step + t], b[j][1] = B_tile[row][step + t + 4];
            }
            for (int i = 0; i < MI; ++i)
                for (int j = 0; j < NI; ++j)
                    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]), "+f"(sums[i][j][2]), "+f"(sums[i][j][3])
                        : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
        }
        __syncthreads();
    }

    for (int i = 0; i < MI; ++i)
        for (int j = 0; j < NI; ++j) {
            int row = top + y + i * 16 + g, word = (left + x + j * 8) / 2 + t;
            if (row < M && word < N / 2)
                C[size_t(row) * (N / 2) + word] = pack2(sums[i][j][0], sums[i][j][1]);
            if (row + 8 < M && word < N / 2)
                C[size_t(row + 8) * (N / 2) + word] = pack2(sums[i][j][2], sums[i][j][3]);
        }
}
