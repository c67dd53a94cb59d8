"""Sums of e4m3 products by one `wgmma`, as a Hopper GPU made them: run this file on one to measure them again."""

from pathlib import Path

import numpy as np

from labkit import cuda, ptx
from labkit.formats import E4M3

ROWS, COLUMNS, DEPTH = 64, 8, 32
THREADS = 128
FORMAT = ptx.E4M3
FILE = Path(__file__).with_suffix(".npz")
KINDS = ("one sign", "both signs", "any code", "many zeros", "subnormal", "larger sums", "powers of two")


@cuda.jit
def add_products(A, B, before, after):
    a = cuda.shared.array((ROWS, 128), np.uint8, alignment=1024)
    b = cuda.shared.array((COLUMNS, 128), np.uint8, alignment=1024)
    acc = cuda.local.array(4, np.float32)
    t = cuda.threadIdx.x
    for i in range(t, ROWS * DEPTH, THREADS):
        r, c = i // DEPTH, i % DEPTH
        a[r, (c // 16 ^ r % 8) * 16 + c % 16] = A[r, c]
    for i in range(t, COLUMNS * DEPTH, THREADS):
        r, c = i // DEPTH, i % DEPTH
        b[r, (c // 16 ^ r % 8) * 16 + c % 16] = B[r, c]
    ptx.fence_async()
    cuda.syncthreads()
    row = t // 32 * 16 + t % 32 // 4
    for h in range(2):
        for c in range(2):
            acc[2 * h + c] = before[row + 8 * h, t % 4 * 2 + c]
    ptx.wgmma_fence()
    ptx.wgmma(acc, 0, COLUMNS, a, (0, 0), b, (0, 0), FORMAT)
    ptx.wgmma_commit()
    ptx.wgmma_wait(0)
    for h in range(2):
        for c in range(2):
            after[row + 8 * h, t % 4 * 2 + c] = acc[2 * h + c]


def operands(kind):
    """Codes of A and B, and sums that products are added to, of which half are 0."""
    rng = np.random.default_rng(KINDS.index(kind))
    A, B = (rng.integers(0, 256, (rows, DEPTH)).astype(np.uint8) for rows in (ROWS, COLUMNS))
    size = rng.uniform(-10, 24, (ROWS, COLUMNS))
    match kind:
        case "one sign":
            A, B = A & 0x7F, B & 0x7F
        case "both signs":
            A, B = (E4M3.encode(rng.standard_normal(X.shape)) for X in (A, B))
        case "many zeros":
            A, B = (np.where(rng.random(X.shape) < 0.8, X & 0x80, X) for X in (A, B))
        case "subnormal":
            A, B = (np.where(rng.random(X.shape) < 0.9, X & 0x87, X & 0x9F) for X in (A, B))
            size -= 22
        case "larger sums":
            size = rng.uniform(16, 36, size.shape)
        case "powers of two":
            A, B = E4M3.encode(2.0 ** rng.integers(-9, 9, A.shape)), E4M3.encode(2.0 ** rng.integers(-2, 3, B.shape))
    A, B = (np.where(X & 0x7F == 0x7F, X ^ 1, X).astype(np.uint8) for X in (A, B))  # no NaN
    signs = 1 if kind in ("one sign", "powers of two") else rng.choice([-1, 1], size.shape)
    return A, B, (rng.integers(0, 2, size.shape) * signs * 2.0**size).astype(np.float32)


def load(kind):
    """A and B in codes, sums before, and sums after."""
    with np.load(FILE) as measured:
        return [measured[f"{name} {kind}"] for name in ("A", "B", "before", "after")]


def measure():
    found = {}
    for kind in KINDS:
        A, B, before = operands(kind)
        after = cuda.to_device(np.zeros_like(before))
        add_products[1, THREADS](*map(cuda.to_device, (A, B, before)), after)
        arrays = {"A": A, "B": B, "before": before, "after": after.copy_to_host()}
        found |= {f"{name} {kind}": X for name, X in arrays.items()}
    np.savez_compressed(FILE, **found)


if __name__ == "__main__":
    measure()
