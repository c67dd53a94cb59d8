// A block loads the pixels under all its taps into shared memory, and each of them is used by many taps there.

constexpr int BLOCK = 16;

extern "C" __global__ void halo(const float *x, const float *w, float *y, int C, int H, int W, int K, int R, int S,
                                int P, int Q, int stride_h, int stride_w, int top, int left, int dilation_h,
                                int dilation_w, int groups, int flipped)
{
    extern __shared__ float pixels[];
    int rows = (BLOCK - 1) * stride_h + (R - 1) * dilation_h + 1;
    int columns = (BLOCK - 1) * stride_w + (S - 1) * dilation_w + 1;
    int pitch = (columns + 15) / 32 * 32 + 16;
    float *taps = pixels + rows * pitch;
    size_t plane = blockIdx.x;
    int n = plane / K, k = plane % K;
    int C_group = C / groups;
    const float *image = x + (size_t(n) * C + k / (K / groups) * C_group) * H * W;
    const float *filter = w + size_t(k) * C_group * R * S;
    int thread_x = threadIdx.x, thread_y = threadIdx.y;
    int q = blockIdx.y * BLOCK + thread_x;
    int p = blockIdx.z * BLOCK + thread_y;
    int first_row = blockIdx.z * BLOCK * stride_h - top;
    int first_col = blockIdx.y * BLOCK * stride_w - left;

    float total = 0;
    for (int c = 0; c < C_group; ++c) {
        for (int i = thread_y; i < rows; i += BLOCK)
            for (int j = thread_x; j < columns; j += BLOCK) {
                int row = first_row + i, col = first_col + j;
                bool inside = 0 <= row && row < H && 0 <= col && col < W;
                pixels[i * pitch + j] = inside ? image[(size_t(c) * H + row) * W + col] : 0;
            }
        for (int r = thread_y; r < R; r += BLOCK)
            for (int s = thread_x; s < S; s += BLOCK) {
                int place = flipped ? (R - 1 - r) * S + S - 1 - s : r * S + s;
                taps[place] = filter[(c * R + r) * S + s];
            }
        __syncthreads();
        for (int r = 0; r < R; ++r)
            for (int s = 0; s < S; ++s) {
                int place = (thread_y * stride_h + r * dilation_h) * pitch + thread_x * stride_w + s * dilation_w;
                total += pixels[place] * taps[r * S + s];
            }
        __syncthreads();
    }

    if (p < P && q < Q)
        y[(plane * P + p) * Q + q] = total;
}
