"""Other answers to put-the-barrier-back."""

from . import Answer, right, shortcut, wrong
from .shared import ATOMIC_A, ATOMIC_B, by_shuffles, naive

PRODUCTS = "            total += A_tile[y, k] * B_tile[k, x]\n"

BARRIER = "        cuda.syncthreads()\n"

ONES_ADDED = (
    "    if row < M and col < N:\n        C",
    "    total *= A_tile[y, x]\n    if row < M and col < N:\n        C",
)

VARIANTS = (
    Answer("the bug itself", "race", ((PRODUCTS + BARRIER, PRODUCTS),)),
    Answer("no barrier after the loads", "race", ((BARRIER + "        for k", "        for k"),)),
    Answer(
        "no barrier at all",
        "race",
        ((BARRIER + "        for k", "        for k"), (PRODUCTS + BARRIER, PRODUCTS)),
    ),
    Answer(
        "both barriers before the products",
        "race",
        ((PRODUCTS + BARRIER, PRODUCTS), (BARRIER, BARRIER * 2)),
    ),
    Answer(
        "a barrier that half of the block passes",
        "barrier",
        ((PRODUCTS + BARRIER, PRODUCTS + "        if y < 4:\n    " + BARRIER),),
    ),
    Answer(
        "a tile too few",
        "result",
        (("range(0, K, TILE)", "range(0, K - TILE, TILE)"),),
        mistake="the last tile along K were left out",
    ),
    Answer("a length of the book's", "result", (("range(0, K, TILE)", "range(0, 40, TILE)"),)),
    Answer("a barrier inside the loop over k", "budget", ((PRODUCTS + BARRIER, PRODUCTS + "    " + BARRIER),)),
    Answer(
        "the barrier first in the loop over tiles",
        "solved",
        ((PRODUCTS + BARRIER, PRODUCTS), ("        A_tile[y, x] =", BARRIER + "        A_tile[y, x] =")),
    ),
    Answer(
        "whole tiles alone",
        "result",
        (("range(0, K, TILE)", "range(0, K // TILE * TILE, TILE)"),),
        mistake="the end of K that fills no whole tile were left out",
    ),
    Answer(
        "the last product alone",
        "result",
        (("total += A_tile", "total = A_tile"),),
        mistake="only the last product of each sum were kept",
    ),
)

RIGHT = (
    right(
        "barrier first",
        ("B_tile[k, x]\n        cuda.syncthreads()\n", "B_tile[k, x]\n"),
        ("        A_tile[y, x] =", "        cuda.syncthreads()\n        A_tile[y, x] ="),
    ),
    right(
        "folded shapes",
        ("TILE = 8\n", "TILE = 8\nSHAPE = TILE, TILE\n"),
        ("A_tile = cuda.shared.array((TILE, TILE)", "A_tile = cuda.shared.array(SHAPE"),
    ),
)

WRONG = (
    wrong("the longest sum that is published", ("range(0, K, TILE)", "range(0, min(K, 100), TILE)")),
    wrong("the rows that are published", ("    if row < M and col < N:", "    if row < min(M, 64) and col < N:")),
    wrong("what C held is lost", ("C[row, col] += total", "C[row, col] = total"), mistake="what C held were lost"),
    wrong(
        "no second barrier in the later rounds",
        (
            "B_tile[k, x]\n        cuda.syncthreads()\n",
            "B_tile[k, x]\n        if start < 100:\n            cuda.syncthreads()\n",
        ),
    ),
)

SHORTCUTS = (
    shortcut("A by shuffles, times ones from its tile", *by_shuffles("y % 4 * 8 + k"), ONES_ADDED),
    shortcut("no tiles", cell=naive("two_barriers", "A, B, C", "A[row, k] * B[k, col]", "C[row, col] += total")),
    shortcut(
        "no tiles, by atomics",
        cell=naive("two_barriers", "A, B, C", f"{ATOMIC_A} * {ATOMIC_B}", "C[row, col] += total"),
    ),
    shortcut(
        "a barrier of each warp", ("        cuda.syncthreads()\n    if row", "        cuda.syncwarp()\n    if row")
    ),
    shortcut(
        "a barrier a product",
        ("        cuda.syncthreads()\n    if row", "            cuda.syncthreads()\n    if row"),
    ),
    shortcut("a fence", ("        cuda.syncthreads()\n    if row", "        cuda.threadfence_block()\n    if row")),
)
