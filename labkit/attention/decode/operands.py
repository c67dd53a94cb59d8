"""Sizes of the decoding kernels, and what their launches take: adapted kernels, arguments, shares of a full GPU."""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.attention.decode.problem import AttentionDecode
from labkit.attention.operands import SIGNS, as_matrices, exp2_scale
from labkit.formats import Format

BN = 16  # keys of a tile
ROWS = 16  # queries of a tile
MASKED = np.float32(-np.inf)  # the score of a key that is not seen
STAGES = {64: 6, 128: 3}  # tiles of K and of V that a warp has, by columns of a tile
BLOCKS_PER_SM = 1  # which takes all of its shared memory
WARPS = 8
THREADS = 32 * WARPS


def padded_head_dim(problem: AttentionDecode) -> int:
    """Columns of a tile: head_dim, and zeros."""
    return -(-problem.head_dim // 64) * 64


def shared_bytes(problem: AttentionDecode) -> int:
    """Shared memory of a block: the tiles of K and of V of all warps."""
    head = padded_head_dim(problem)
    return 2 * WARPS * STAGES[head] * BN * head * 2


def specialise_kernel(kernel, problem: AttentionDecode, format: Format, *constant_names: str):
    """The kernel for a format and these of its constants, by default all: HEAD, STAGES and SIGN_BITS."""
    head = padded_head_dim(problem)
    constants = {"HEAD": head, "STAGES": STAGES[head], "SIGN_BITS": SIGNS if problem.factor < 0 else 0}
    return _specialised(kernel, FORMAT=format.number, **{name: constants[name] for name in constant_names or constants})


_specialised = cache(specialise)


def count_planes(problem: AttentionDecode) -> int:
    """Tiles of queries per sequence: the heads of Q that share a head of K fill one tile of `ROWS` rows, or more."""
    return problem.kv_heads * -(-problem.heads_per_kv * problem.queries // ROWS)


def max_resident_blocks() -> int:
    """Blocks that the GPU holds at the same time."""
    return cuda.get_current_device().MULTIPROCESSOR_COUNT * BLOCKS_PER_SM


def wave_utilisation(blocks: int) -> float:
    """Share of the GPU's places for blocks that is used on average, if all blocks take equally long."""
    resident = max_resident_blocks()
    return blocks / (resident * -(-blocks // resident))


def make_arguments(problem: AttentionDecode, Q, K, V, lengths, table, O, lse, format: Format) -> tuple:
    """Check the operands, and return what kernels take: arrays as words, strides in rows, sizes and scale.

    Raise TypeError or ValueError if an array is not as the problem has it, or the steps do not take the problem.
    """
    if problem.head_dim > max(STAGES):
        raise ValueError(f"head_dim is {problem.head_dim}, but steps take up to {max(STAGES)}: use more heads")
    problem.check(Q, K, V, lengths, table, O, lse, supported={"window": (None,)}, dtype=format.dtype)
    if problem.pages > 1 and problem.page % BN:
        raise ValueError(
            f"a page has {problem.page} positions, and steps copy {BN} at a time: give it a multiple of {BN}"
        )
    words, strides = as_matrices(problem, Q, K, V, O, words=True)
    sizes = map(np.int32, (problem.positions, problem.heads_per_kv, problem.queries, problem.causal))
    return *words[:3], lengths, table, words[3], lse, strides, *sizes, exp2_scale(problem)
