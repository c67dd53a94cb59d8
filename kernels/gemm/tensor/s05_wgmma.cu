// A warpgroup multiplies 64 x 256 in one instruction, and the tensor cores read shared memory themselves.

constexpr int BM = 128, BN = 256;
constexpr int BK = 32;   // words of k that a stage holds, 128 bytes
constexpr int STEP = 8;  // words of k that an instruction takes
constexpr int STAGES = 4;
constexpr int WM = 64, SUMS = WM * BN / 128;
constexpr int WARPGROUPS = BM / WM, WARPS = 4 * (1 + WARPGROUPS);
constexpr int STAGE_BYTES = (BM + BN) * BK * 4;
constexpr int BAND = 16;  // rows of tiles that are walked column by column

__device__ unsigned shared_address(const void *place)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(place));
}

__device__ void mbarrier_wait(const void *barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra passed;\nbra again;\npassed:\n}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

// The driver's CUtensorMap.
struct __align__(64) TensorMap {
    char bytes[128];
};

__device__ void tma_load(void *tile, const void *map, int row, int word, const void *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared_address(tile)), "l"(map), "r"(word), "r"(row), "r"(shared_address(barrier)) : "memory");
}

// What `wgmma` takes for a tile whose rows are 128 swizzled bytes.
__device__ unsigned long long descriptor(const void *tile)
{
    unsigned long long start = (shared_address(tile) & 0x3FFFF) >> 4;
    return start | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)

__device__ void multiply(float (&d)[SUMS], unsigned long long a, unsigned long long b)
{
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1, 1, 1, 0, 0;"
        : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80), SIXTEEN(96), SIXTEEN(112)
        : "l"(a), "l"(b));
}

__device__ unsigned pack2(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(low), "f"(high));
    return both;
}

// C as words of two bfloat16; K counts words.
extern "C" __global__ __launch_bounds__(32 * WARPS, 1)
void wgmma(const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map, unsigned *C, int M, int N, int K)
{
    extern __shared__ __align__(1024) unsigned tiles[];
    auto A_tiles = reinterpret_cast<unsigned(*)[BM][BK]>(tiles);
    auto B_tiles = reinterpret_cast<unsigned(*)[BN][BK]>(tiles + STAGES * BM * BK);
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    int lane = threadIdx.x, warp = threadIdx.y;
    if (warp == 0 && lane == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[stage])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&empty[stage])), "r"(WARPGROUPS)
                         : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int rows = (M + BM - 1) / BM, cols = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
    int band = blockIdx.x / (BAND * cols), height = min(rows - band * BAND, BAND);
    int within = blockIdx.x - band * BAND * cols;
    int top = (band * BAND + within % height) * BM, left = within / height * BN;

    if (warp < 4) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0 && lane == 0) {
            for (int tile = 0; tile < steps; ++tile) {
                int stage = tile % STAGES, turn = tile / STAGES;
                mbarrier_wait(&empty[stage], (turn + 1) % 2);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&full[stage])),
                             "r"(STAGE_BYTES) : "memory");
                tma_load(A_tiles[stage], &A_map, top, tile * BK, &full[stage]);
                tma_load(B_tiles[stage], &B_map, left, tile * BK, &full[stage]);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float sums[SUMS] = {};
        int y = (warp / 4 - 1) * WM;
        bool leads = warp % 4 == 0 && lane == 0;
        for (int tile = 0; tile < steps; ++tile) {
            int stage = tile % STAGES, turn = tile / STAGES;
            mbarrier_wait(&full[stage], turn % 2);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            for (int step = 0; step < BK; step += STEP)
                multiply(sums, descriptor(&A_tiles[stage][y][step]), descriptor(&B_tiles[stage][0][step]));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (leads && tile > 0)
                asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&empty[(tile - 1) % STAGES]))
                             : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

        int row = top + y + warp % 4 * 16 + lane / 4, word = left / 2 + lane % 4;
        for (int n = 0; n < SUMS; n += 4) {
            if (row < M && word + n < N / 2)
                C[size_t(row) * (N / 2) + word + n] = pack2(sums[n], sums[n + 1]);
            if (row + 8 < M && word + n < N / 2)
                C[size_t(row + 8) * (N / 2) + word + n] = pack2(sums[n + 2], sums[n + 3]);
        }
    }
}
