"""`labkit bench tensor_cores`: what `mma` and `wgmma` reach without global memory, by their operands' bits.

Each kernel repeats its instruction on operands that stay where it reads them: `mma` in registers, `wgmma` in shared
memory. The operands are normal random numbers, the same rounded to 7 bits of fraction, or zeros. The persistent kernel
of the GEMM ladder multiplies the same operands from global memory, for comparison.
"""

import numpy as np

from labkit import cuda, formats, gemm, ptx, specialise
from labkit.arrays.views import as_words
from labkit.bench import _record, _sustained
from labkit.results.computed import add_computed

FORMAT = ptx.BF16  # `repeat` replaces it
SIDE = 8192  # of the persistent kernel's matrices
ITERATIONS = 20_000
ACCUMULATORS = 8  # fragments that a warp of `mma` adds to: one instruction needs no result of the seven before it
WARPS = 8  # of a block
BLOCKS_PER_SM = 4  # of `mma`
MMA_FLOPS = WARPS * ACCUMULATORS * 2 * 16 * 8 * 16  # of a block's iteration
M, N, K = 128, 256, 64  # of a block of `wgmma`, in elements
BK = K // 2  # in words
B_BYTE = M * K * 2  # where the tile of B begins
SHARED_BYTES = (M + N) * K * 2
NUM_ACC = N // 2  # of a thread
OPERANDS = {formats.BF16: ("7 bits", "zeros"), formats.FP16: ("10 bits", "7 bits", "zeros")}
COLUMNS = {"step": "", "dtype": "", "operands": "", "tflops": ".0f", "clock_mhz": ".0f", "power_w": ".0f"}


@cuda.jit
def only_mma(words, sums, iterations):
    acc = cuda.local.array((ACCUMULATORS, 4), np.float32)
    lane = np.uint32(cuda.threadIdx.x)
    a0, a1, a2, a3 = words[lane], words[32 + lane], words[64 + lane], words[96 + lane]
    b0, b1 = words[128 + lane], words[160 + lane]
    for j in range(ACCUMULATORS):
        for n in range(4):
            acc[j, n] = 0
    for _ in range(iterations):
        for j in range(ACCUMULATORS):
            ptx.mma(acc, (j, 0), (a0, a1, a2, a3), (b0, b1), FORMAT)
    total = np.float32(0)
    for j in range(ACCUMULATORS):
        for n in range(4):
            total += acc[j, n]
    sums[cuda.blockIdx.x, cuda.threadIdx.y, lane] = total  # else the compiler removes the loop


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def only_wgmma(words, sums, iterations):
    A_tile = ptx.shared_array(0, (M, BK), np.uint32)
    B_tile = ptx.shared_array(B_BYTE, (N, BK), np.uint32)
    acc = cuda.local.array(NUM_ACC, np.float32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    for row in range(warp, M, WARPS):
        A_tile[row, lane] = words[row * BK + lane]
    for row in range(warp, N, WARPS):
        B_tile[row, lane] = words[(M + row) * BK + lane]
    ptx.fence_async()
    cuda.syncthreads()
    for n in range(NUM_ACC):
        acc[n] = 0
    for _ in range(iterations):
        ptx.wgmma_fence()
        for step in range(0, BK, 8):
            ptx.wgmma(acc, 0, N, A_tile, (warp // 4 * 64, step), B_tile, (0, step), FORMAT)
        ptx.wgmma_commit()
        ptx.wgmma_wait(0)
    total = np.float32(0)
    for n in range(NUM_ACC):
        total += acc[n]
    sums[cuda.blockIdx.x, warp, lane] = total  # else the compiler removes the loop


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times tensor cores", "nvidia-smi")
    rows = [row for format, kinds in OPERANDS.items() for operands in kinds for row in measure(format, operands)]
    _record.print_table(f"Tensor cores of {gpu.name}", rows, COLUMNS)
    _record.store_if_requested("tensor_cores", rows, gpu.name, record, out)


def draw(shape: tuple[int, ...], operands: str, format) -> np.ndarray:
    """Return normal random numbers in the format: as they are, with 7 bits of fraction, or times zero."""
    numbers = np.random.default_rng(0).standard_normal(shape)
    if operands == "7 bits":
        numbers = formats.BF16.decode(formats.BF16.encode(numbers))
    return format.encode(0 * numbers if operands == "zeros" else numbers)


def measure(format, operands: str) -> list[dict]:
    """Return a row for each kernel."""
    gpu = cuda.get_current_device()
    rows = []
    for name, (launch, flops) in work(format, operands, gpu.MULTIPROCESSOR_COUNT).items():
        row = {"operation": "tensor_cores", "step": name, "dtype": format.name, "operands": operands, "flops": flops}
        rows.append(add_computed({**row, **_sustained.measure(launch, str(gpu.uuid))}))
    return rows


def work(format, operands: str, sms: int) -> dict[str, tuple]:
    """Return for each kernel a function of a stream that launches it, and its FLOP."""
    words = cuda.to_device(as_words(draw((M + N, K), operands, format)).ravel())
    matrix = cuda.to_device(draw((SIDE, SIDE), operands, format))
    product = cuda.to_device(np.zeros((SIDE, SIDE), matrix.dtype))
    persistent = gemm.ladder("tensor").step("persistent")
    blocks = BLOCKS_PER_SM * sms
    return {
        "mma": (repeat(only_mma, format, blocks, words), blocks * ITERATIONS * MMA_FLOPS),
        "wgmma": (repeat(only_wgmma, format, sms, words, SHARED_BYTES), sms * ITERATIONS * 2 * M * N * K),
        "persistent": (
            lambda stream: persistent.launch(matrix, matrix, product, format=format, stream=stream),
            2 * SIDE**3,
        ),
    }


def repeat(kernel, format, blocks: int, words, shared_bytes: int = 0):
    """Return a function that launches the kernel on a stream."""
    kernel, sums = specialise(kernel, FORMAT=format.number), cuda.device_array((blocks, WARPS, 32), np.float32)
    return lambda stream: kernel[blocks, (32, WARPS), stream, shared_bytes](words, sums, ITERATIONS)
