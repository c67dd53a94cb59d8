"""What a warp does with a tile of 16 keys, and how partial results are put together.

Rows of a warp's tile of scores are the queries of all heads that share a head of K, 16 of them at most; lane 4 g + t
has parts of rows g and g + 8. A warp keeps sums of weighed values, and for each row the origin of its exponents and the
total of its weights: these three are a *partial result* of the keys that it saw. Those of other keys may have another
origin, and are added to it as softmax is merged. (Milakov and Gimelshein, Online normalizer calculation for softmax,
2018, section 3.1.)
"""

from functools import cache
from math import inf, log

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import VECTOR_BYTES
from labkit.attention.blocks import divided
from labkit.attention.decode.problem import AttentionDecode
from labkit.attention.operands import matrices, scale_of
from labkit.formats import Format

FORMAT = ptx.BF16
FLIP = 0  # bits that turn the signs of a word of Q
BN = 16  # keys of a tile
ROWS = 16  # queries of a tile
HEAD = 128  # columns of a tile: head_dim and zeros
WORDS, PANEL = HEAD // 2, 32  # of a row, and those of them that eight lanes copy at once
STEPS, NO = HEAD // 16, HEAD // 8  # of k in Q K^T, and fragments of 8 columns of O
RISE = np.float32(8)  # of a maximum, as an exponent of 2, above which sums are rescaled
AT_ONCE = 8  # partial results that a thread reads before it adds them
NONE = np.float32(-inf)
LN_2 = np.float32(log(2))
ALL = 0xFFFFFFFF
STAGES = {64: 6, 128: 3}  # tiles of K and of V that a warp has, by HEAD
BLOCKS_OF_SM = 1  # which takes all of its shared memory
WARPS = 8
THREADS = 32 * WARPS


@cuda.jit(device=True)
def copy_tile(tiles, slot, X, row, apart, inside, lane):
    """Copies of the first `inside` rows of 16, from a row of X on and `apart` from one another; zeros behind them.

    A piece of 16 bytes of row r lies where piece p ^ (r % 8) would be, so that `ldmatrix` meets no bank twice.
    """
    y, piece = np.uint32(lane // 8), np.uint32(lane % 8)
    first, step = np.uint64(row + lane // 8 * apart), np.uint64(4 * apart)
    for i in range(BN // 4):
        at = np.uint32(y + 4 * i)
        for panel in range(0, WORDS, PANEL):
            word = np.uint32(panel + piece * 4)
            place = slot, at, np.uint32(panel + (piece ^ at % 8) * 4)
            valid = VECTOR_BYTES if at < inside and word < X.shape[1] else 0
            ptx.cp_async(tiles, place, X, (first + np.uint64(i) * step, word), VECTOR_BYTES, valid)


@cuda.jit(device=True)
def copy(K_tiles, V_tiles, slot, K, V, table, apart, page, batch, head, position, length, lane):
    """The warp begins to copy the keys and values from a position of a sequence on, which all lie in one page."""
    turn, of_page = divided(position, page)
    own, inside = table[batch, turn], np.int32(length - position)
    k_row = np.int32(own * apart[1][0] + head * apart[1][1] + of_page * apart[1][2])
    v_row = np.int32(own * apart[2][0] + head * apart[2][1] + of_page * apart[2][2])
    copy_tile(K_tiles, slot, K, k_row, apart[1][2], inside, lane)
    copy_tile(V_tiles, slot, V, v_row, apart[2][2], inside, lane)


@cuda.jit(device=True)
def load_queries(q, Q, row, apart, top, members, queries, lane):
    """The fragments of 16 rows of queries, from member `top` of those of a group on.

    Rows that there are not repeat the last one, and so do columns, which meet zeros in a tile of K.
    """
    last = np.uint32(Q.shape[1] - 1)
    for r in range(2):
        own, query = divided(min(top + lane // 4 + 8 * r, members - 1), queries)
        at = np.uint32(row + own * apart[1] + query * apart[2])
        for step in range(STEPS):
            for half in range(2):
                word = min(np.uint32(step * 8 + half * 4 + lane % 4), last)
                q[step, 2 * half + r] = Q[at, word] ^ np.uint32(FLIP)


@cuda.jit(device=True)
def attend(sums, origin, total, q, K_tiles, V_tiles, slot, left, seen, scale, lane):
    """Adds the keys and values of a tile, from position `left` on, to a partial result.

    `seen` says how many keys each of the lane's two rows sees.
    """
    scores = cuda.local.array((2, 4), np.float32)
    shrunk = cuda.local.array(2, np.float32)
    b_row, b_piece = np.uint32(lane // 16 * 8 + lane % 8), np.uint32(lane // 8 % 2)
    a_row, a_piece = np.uint32(lane % 16), np.uint32(lane // 16)
    for j in range(2):
        for n in range(4):
            scores[j, n] = 0
    for step in range(STEPS):
        a = q[step, 0], q[step, 1], q[step, 2], q[step, 3]
        at = slot, b_row, np.uint32((step * 2 + b_piece ^ b_row % 8) * 4)
        b0, b1, b2, b3 = ptx.ldmatrix4(K_tiles, at)
        ptx.mma(scores, (0, 0), a, (b0, b1), FORMAT)
        ptx.mma(scores, (1, 0), a, (b2, b3), FORMAT)
    for j in range(2):
        for n in range(4):
            if left + j * 8 + lane % 4 * 2 + n % 2 >= seen[n // 2]:
                scores[j, n] = NONE

    least = np.float32(1)
    for r in range(2):
        most = max(max(scores[0, 2 * r], scores[0, 2 * r + 1]), max(scores[1, 2 * r], scores[1, 2 * r + 1]))
        most = max(most, cuda.shfl_xor_sync(ALL, most, 1))
        most = max(most, cuda.shfl_xor_sync(ALL, most, 2)) * scale
        moved = most if most - origin[r] > RISE else origin[r]
        base = np.float32(0) if moved == NONE else moved
        shrunk[r] = ptx.exp2(origin[r] - base)
        least = min(least, shrunk[r])
        origin[r] = moved
        total[r] *= shrunk[r]
        for j in range(2):
            for n in range(2 * r, 2 * r + 2):
                scores[j, n] = ptx.exp2(scores[j, n] * scale - base)
                total[r] += scores[j, n]
    if cuda.any_sync(ALL, least < np.float32(1)):
        for j in range(NO):
            for n in range(4):
                sums[j, n] *= shrunk[n // 2]

    a0, a1 = ptx.pack2(scores[0, 0], scores[0, 1], FORMAT), ptx.pack2(scores[0, 2], scores[0, 3], FORMAT)
    a2, a3 = ptx.pack2(scores[1, 0], scores[1, 1], FORMAT), ptx.pack2(scores[1, 2], scores[1, 3], FORMAT)
    for j in range(0, NO, 2):
        at = slot, a_row, np.uint32((j + a_piece ^ a_row % 8) * 4)
        b0, b1, b2, b3 = ptx.ldmatrix4_transposed(V_tiles, at)
        ptx.mma(sums, (j, 0), (a0, a1, a2, a3), (b0, b1), FORMAT)
        ptx.mma(sums, (j + 1, 0), (a0, a1, a2, a3), (b2, b3), FORMAT)


@cuda.jit(device=True)
def put(parts, place, sums, origin, total, lane):
    """Stores a warp's partial result: of each row HEAD sums, then its origin and its total."""
    for r in range(2):
        row = np.uint32(lane // 4 + 8 * r)
        total[r] += cuda.shfl_xor_sync(ALL, total[r], 1)
        total[r] += cuda.shfl_xor_sync(ALL, total[r], 2)
        for j in range(NO):
            ptx.store2(parts, (place, row, np.uint32(j * 8 + lane % 4 * 2)), sums[j, 2 * r], sums[j, 2 * r + 1])
        if lane % 4 == 0:
            ptx.store2(parts, (place, row, HEAD), origin[r], total[r])


@cuda.jit(device=True)
def merged(parts, first, behind, row, col):
    """Four columns of a row of several partial results together, their origin and their total.

    It takes them in their order, so that the bits are the same each time.
    """
    origins = cuda.local.array(AT_ONCE, np.float32)
    totals = cuda.local.array(AT_ONCE, np.float32)
    found = cuda.local.array((AT_ONCE, 4), np.float32)
    origin, total, a, b, c, d = NONE, np.float32(0), np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for some in range(first, behind, AT_ONCE):
        high = origin
        for n in range(AT_ONCE):
            origins[n] = NONE
            totals[n] = found[n, 0] = found[n, 1] = found[n, 2] = found[n, 3] = 0
            if some + n < behind:
                origins[n], totals[n] = ptx.load2(parts, (some + n, row, HEAD))
                found[n, 0], found[n, 1], found[n, 2], found[n, 3] = ptx.load4(parts, (some + n, row, col))
            high = max(high, origins[n])
        base = np.float32(0) if high == NONE else high
        share = ptx.exp2(origin - base)
        total, a, b, c, d = total * share, a * share, b * share, c * share, d * share
        for n in range(AT_ONCE):
            share = ptx.exp2(origins[n] - base)
            total += totals[n] * share
            a += found[n, 0] * share
            b += found[n, 1] * share
            c += found[n, 2] * share
            d += found[n, 3] * share
        origin = high
    return origin, total, a, b, c, d


@cuda.jit(device=True)
def keep(results, place, of_warps, rows, thread):
    """The block puts the partial results of its warps together, and stores so many rows."""
    for n in range(thread * 4, rows * HEAD, THREADS * 4):
        row, col = np.int32(n // HEAD), np.int32(n % HEAD)
        origin, total, a, b, c, d = merged(of_warps, 0, WARPS, row, col)
        ptx.store4(results, (place, row, col), a, b, c, d)
        if col == 0:
            ptx.store2(results, (place, row, HEAD), origin, total)


@cuda.jit(device=True)
def finish(O, lse, parts, first, behind, row, col, o_row, apart, batch, head, member):
    """Puts four columns of a row of partial results together, and writes O, and with the first of them log-sum-exp.

    It is the query of a member of a group of heads that begins with `head`.
    """
    origin, total, a, b, c, d = merged(parts, first, behind, row, col)
    share = np.float32(0) if total == np.float32(0) else np.float32(1) / total
    (own, query), word = divided(member, lse.shape[2]), np.uint32(col // 2)
    at = np.uint32(o_row + own * apart[1] + query * apart[2])
    if word < O.shape[1]:
        ptx.store2(O, (at, word), ptx.pack2(a * share, b * share, FORMAT), ptx.pack2(c * share, d * share, FORMAT))
    if col == 0:
        lse[batch, head + own, query] = origin * LN_2 + log(total)


@cache
def constants(head_dim: int) -> dict[str, int]:
    """Of the kernels, and of their launches, for a head_dim."""
    head = -(-head_dim // 64) * 64
    stages = STAGES[head]
    found = {"HEAD": head, "WORDS": head // 2, "STEPS": head // 16, "NO": head // 8, "ROW": head + 8}
    tiles = WARPS * stages * BN * head * 2
    found |= {"STAGES": stages, "PENDING": stages - 2, "SLOTS": WARPS * stages}
    return found | {"V_BYTE": tiles, "SHARED_BYTES": 2 * tiles}


def in_sizes(kernel, problem: AttentionDecode, format: Format, *names: str):
    """The kernel for a format, the sign of the scale, and a head_dim: with all these constants, or those named."""
    turns, _ = scale_of(problem)
    known = constants(problem.head_dim) | {"FLIP": 0x80008000 if turns else 0}
    names = names or tuple(name for name in known if name != "SHARED_BYTES")
    return _specialised(kernel, FORMAT=format.number, **{name: known[name] for name in names})


_specialised = cache(specialise)


def planes_of(problem: AttentionDecode) -> int:
    """Tiles of queries of a sequence: those of all heads that share one of K have one, or more if they are many."""
    return problem.kv_heads * -(-problem.group * problem.queries // ROWS)


def blocks_at_once() -> int:
    """How many blocks the GPU holds at the same time."""
    return cuda.get_current_device().MULTIPROCESSOR_COUNT * BLOCKS_OF_SM


def share_taken(blocks: int) -> float:
    """Share of the places for blocks that are taken on average, where all blocks take as long."""
    places = blocks_at_once()
    return blocks / (places * -(-blocks // places))


def arguments(problem: AttentionDecode, Q, K, V, lengths, table, O, lse, format: Format) -> tuple:
    """What kernels take, after a check: the arrays as words; how far rows are apart; sizes and scale.

    Raises
    ------
    TypeError, ValueError
        An array is not as the problem has it, or the problem is none for these steps.
    """
    if problem.head_dim > max(STAGES):
        raise ValueError(f"head_dim is {problem.head_dim}, but steps take up to {max(STAGES)}: use more heads")
    problem.check(Q, K, V, lengths, table, O, lse, takes={"window": (None,)}, dtype=format.dtype)
    if problem.pages > 1 and problem.page % BN:
        raise ValueError(
            f"a page has {problem.page} positions, and steps copy {BN} at a time: give it a multiple of {BN}"
        )
    words, apart = matrices(problem, Q, K, V, O, words=True)
    _, scale = scale_of(problem)
    sizes = map(np.int32, (problem.positions, problem.group, problem.queries, problem.causal))
    return *words[:3], lengths, table, words[3], lse, apart, *sizes, scale
