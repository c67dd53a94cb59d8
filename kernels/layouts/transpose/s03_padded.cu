// A block turns a tile round in shared memory; its rows are a bank longer than what they hold.

constexpr int TILE = 32;
constexpr int ROWS = 8;

extern "C" __global__ void padded(const unsigned *x, unsigned *y, int rows, int cols)
{
    __shared__ unsigned tile[TILE][TILE + 1];
    int lane = threadIdx.x, line = threadIdx.y;
    int left = blockIdx.x * TILE, top = blockIdx.y * TILE;
    size_t matrix = (size_t)blockIdx.z * rows * cols;

    for (int i = line; i < TILE; i += ROWS)
        if (top + i < rows && left + lane < cols)
            tile[i][lane] = x[matrix + (size_t)(top + i) * cols + left + lane];
    __syncthreads();
    for (int i = line; i < TILE; i += ROWS)
        if (left + i < cols && top + lane < rows)
            y[matrix + (size_t)(left + i) * rows + top + lane] = tile[lane][i];
}
