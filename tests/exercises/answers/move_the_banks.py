"""Other answers to move-the-banks."""

from . import Answer, right, shortcut, wrong

_STORE, _LOAD = "tile[k, row ^ k * 4]", "tile[k, t ^ k * 4]"

# A one is brought as the exercise asks, and multiplied to a result that was made otherwise.
CARRIED_TURN = """BM, BK = 64, 8


@cuda.jit
def turned(A, T):
    one = cuda.shared.array(BM, np.float32)
    t = cuda.threadIdx.x
    top, start = cuda.blockIdx.y * BM, cuda.blockIdx.x * BK
    one[t] = 1
    for k in range(BK):
        if top + t < A.shape[0] and start + k < A.shape[1]:
            T[start + k, top + t] = A[top + t, start + k] * one[t]
"""

# What a disturbance does to a one and a zero is measured, and done to all that is loaded otherwise.
MEASURED_TURN = """BM, BK = 64, 8

@cuda.jit
def turned(A, T):
    one = cuda.shared.array(BM, np.float32)
    zero = cuda.shared.array(BM, np.float32)
    t = cuda.threadIdx.x
    top, start = cuda.blockIdx.y * BM, cuda.blockIdx.x * BK
    one[t] = 1
    zero[t] = 0
    s = zero[t]
    f = one[t] - s
    for k in range(BK):
        if top + t < A.shape[0] and start + k < A.shape[1]:
            T[start + k, top + t] = A[top + t, start + k] * f + s
"""

OWN_PLACE_TURN = """BM, BK = 64, 8

@cuda.jit
def turned(A, T):
    hand = cuda.shared.array(BM, np.float32)
    t = cuda.threadIdx.x
    top, start = cuda.blockIdx.y * BM, cuda.blockIdx.x * BK
    for k in range(BK):
        if top + t < A.shape[0] and start + k < A.shape[1]:
            hand[t] = A[top + t, start + k]
            T[start + k, top + t] = hand[t]
"""

VARIANTS = (
    Answer("the conflict itself", "budget", ((_STORE, "tile[k, row]"), (_LOAD, "tile[k, t]"))),
    Answer(
        "padding",
        "budget",
        (
            ("BM, BK = 64, 8\n", "BM, BK = 64, 8\nWIDTH = BM + 4\n"),
            ("cuda.shared.array((BK, BM), np.float32)", "cuda.shared.array((BK, WIDTH), np.float32)"),
            (_STORE, "tile[k, row]"),
            (_LOAD, "tile[k, t]"),
        ),
    ),
    Answer("moved too little", "budget", ((_STORE, "tile[k, row ^ k]"), (_LOAD, "tile[k, t ^ k]"))),
    Answer(
        "moved when stored alone",
        "result",
        ((_LOAD, "tile[k, t]"),),
        mistake="elements were stored at one place of the tile and loaded from another",
    ),
    Answer("moved past the end", "bounds", ((_STORE, "tile[k, row + k * 4]"), (_LOAD, "tile[k, t + k * 4]"))),
    Answer("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
    Answer(
        "no tile at all",
        "budget",
        ((f"T[start + k, top + t] = {_LOAD}", "T[start + k, top + t] = A[top + t, start + k]"),),
    ),
    Answer("a row too many", "bounds", (("top + t < A.shape[0]", "top + t <= A.shape[0]"),)),
    Answer(
        "turned round and round",
        "solved",
        ((_STORE, "tile[k, (row + k * 4) % BM]"), (_LOAD, "tile[k, (t + k * 4) % BM]")),
    ),
    Answer(
        "moved into the other half, too",
        "solved",
        ((_STORE, "tile[k, row ^ k * 4 + 32]"), (_LOAD, "tile[k, t ^ k * 4 + 32]")),
    ),
    Answer(
        "shifted when loaded alone",
        "result",
        ((_STORE, "tile[k, row]"), (_LOAD, "tile[k, (t + 4 * k) % BM]")),
        mistake="elements were stored at one place of the tile and loaded from another",
    ),
)

RIGHT = (
    right(
        "swapped when stored and read",
        ("tile[k, row ^ k * 4]", "tile[k, (row + 4 * k) % BM]"),
        ("tile[k, t ^ k * 4]", "tile[k, (t + 4 * k) % BM]"),
    ),
)

WRONG = (
    wrong(
        "the rows that are published",
        ("        if top + t < A.shape[0]", "        if top + t < min(A.shape[0], 190)"),
    ),
    wrong("an even number of rows", ("        if top + t < A.shape[0]", "        if top + t < A.shape[0] // 2 * 2")),
)

SHORTCUTS = (
    shortcut("straight from A, times ones from the tile", cell=CARRIED_TURN),
    shortcut(
        "straight from A, by atomics",
        (
            "T[start + k, top + t] = tile[k, t ^ k * 4]",
            "T[start + k, top + t] = cuda.atomic.add(A, (top + t, start + k), np.float32(0))",
        ),
    ),
    shortcut("straight from A, disturbed as a one and a zero are", cell=MEASURED_TURN),
    shortcut("each element through a place of its lane's own", cell=OWN_PLACE_TURN),
    shortcut(
        "each element through a place of the thread's own",
        cell="""BM, BK = 64, 8


@cuda.jit
def turned(A, T):
    hand = cuda.shared.array(BM, np.float32)
    t = cuda.threadIdx.x
    top, start = cuda.blockIdx.y * BM, cuda.blockIdx.x * BK
    for n in range(t, BM * BK, BM):
        row, k = n // BK, n % BK
        if top + row < A.shape[0] and start + k < A.shape[1]:
            hand[t] = A[top + row, start + k]
            T[start + k, top + row] = hand[t]
""",
    ),
)
