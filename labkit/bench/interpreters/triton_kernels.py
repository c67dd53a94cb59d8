"""Planted bugs as Triton kernels: `python triton_kernels.py BUG wrong|right` runs one under triton-viz's sanitizer.

It follows addresses symbolically and computes no result, so nothing is compared here. `TRITON_INTERPRET=1` is needed.
"""

import sys

import torch
import triton
import triton.language as tl
import triton_viz

SIZE, BLOCK = 100, 64  # two programs, the second of which reaches beyond the array


@triton.jit
def grid_larger_than_the_array(x, y, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WRONG:
        tl.store(y + i, 2 * tl.load(x + i))
    else:
        tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def off_by_one(x, y, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WRONG:
        tl.store(y + i, 1.0, mask=i <= n)
    else:
        tl.store(y + i, 1.0, mask=i < n)


@triton.jit
def negative_index(x, y, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + (i - 1 if WRONG else tl.maximum(i - 1, 0)), mask=i < n)
    tl.store(y + i, (left + tl.load(x + i, mask=i < n)) * 0.5, mask=i < n)


@triton.jit
def counter_without_atomic(x, y, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    count = tl.sum(tl.load(x + i, mask=i < n, other=0.0))
    if WRONG:
        tl.store(y, tl.load(y) + count)
    else:
        tl.atomic_add(y, count)


@triton.jit
def neighbour_update_in_place(x, y, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.load(x + i + 1, mask=i < n - 1)
    if WRONG:
        tl.store(x + i, right, mask=i < n - 1)
    else:
        tl.store(y + i, right, mask=i < n - 1)


@triton.jit
def block_sum_read_too_early(x, y, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    value = tl.load(x + p)
    if WRONG:
        tl.store(y + 1 + p, value)
        if p == 0:
            tl.store(y, tl.load(y + 1) + tl.load(y + 2))
    else:
        tl.atomic_add(y, value)


@triton.jit
def sum_into_a_new_array(x, y, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    if WRONG:
        tl.store(y + i, tl.load(y + i, mask=i < n) + value, mask=i < n)
    else:
        tl.store(y + i, value, mask=i < n)


@triton.jit
def output_never_written(x, y, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WRONG:
        tl.store(y + i, tl.load(x + i, mask=i < n), mask=i >= n + BLOCK)
    else:
        tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


if __name__ == "__main__":
    bug, kernel = sys.argv[1:]
    watched = triton_viz.trace("sanitizer")(globals()[bug])
    watched[(2,)](torch.ones(SIZE), torch.empty(SIZE), SIZE, WRONG=kernel == "wrong", BLOCK=BLOCK)
