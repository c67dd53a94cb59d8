// One thread per output: each multiplies the taps of a filter with the pixels under them, and adds. x counts rows.

extern "C" __global__ void naive(const float *x, const float *w, float *y, int C, int H, int W, int K, int R, int S,
                                 int P, int Q, int stride_h, int stride_w, int top, int left, int dilation_h,
                                 int dilation_w, int groups, int flipped)
{
    size_t plane = blockIdx.x;
    int n = plane / K, k = plane % K;
    int p = blockIdx.y * blockDim.x + threadIdx.x;
    int q = blockIdx.z * blockDim.y + threadIdx.y;
    int C_group = C / groups;
    const float *image = x + (size_t(n) * C + k / (K / groups) * C_group) * H * W;
    const float *filter = w + size_t(k) * C_group * R * S;
    if (p < P && q < Q) {
        float total = 0;
        for (int c = 0; c < C_group; ++c)
            for (int r = 0; r < R; ++r)
                for (int s = 0; s < S; ++s) {
                    int row = p * stride_h + r * dilation_h - top;
                    int col = q * stride_w + s * dilation_w - left;
                    if (0 <= row && row < H && 0 <= col && col < W) {
                        int tap_row = flipped ? R - 1 - r : r, tap_col = flipped ? S - 1 - s : s;
                        total += image[(size_t(c) * H + row) * W + col] * filter[(c * R + tap_row) * S + tap_col];
                    }
                }
        y[(plane * P + p) * Q + q] = total;
    }
}
