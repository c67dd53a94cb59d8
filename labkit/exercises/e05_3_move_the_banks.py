"""Exercise 05.3: a tile that is stored transposed, whose stores all meet in a few banks."""

from labkit.exercises.budget import SHARED_BYTES, Budget
from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect, matrix, unwritten

BM, BK = 64, 8
SIZES = ((128, 24), (100, 30))  # rows, columns of A; the second is ragged


def launch(rng, rows, columns):
    A = matrix(rng, rows, columns)
    return Launch(
        label=f"A {rows} x {columns}, tiles of {BM} x {BK}, {BM} threads",
        args=(A, unwritten((columns, rows))),
        outputs={1: expect(A.T.astype(float))},
        grid=(-(-columns // BK), -(-rows // BM)),
        block=(BM,),
        budgets=(
            Budget(SHARED_BYTES, BM * BK * 4, "BM * BK * 4: the tile, without padding"),
            Budget("global loads", rows * columns, "each element once"),
            Budget("bank conflicts", 0, "none"),
        ),
    )


_STORE, _LOAD = "tile[k, row ^ k * 4]", "tile[k, t ^ k * 4]"

EXERCISE = Exercise(
    id="05.3",
    title="Move the banks",
    task="A's tile is stored transposed, and eight lanes of each store meet in one bank. "
    "Choose places in the tile so that none do, without more shared memory.",
    points=2,
    function="turned",
    launch=launch,
    sizes=SIZES,
    drawn=((range(130, 190), range(9, 24)),),
    variants=(
        Variant("the conflict itself", "budget", ((_STORE, "tile[k, row]"), (_LOAD, "tile[k, t]"))),
        Variant(
            "padding",
            "budget",
            (
                ("BM, BK = 64, 8\n", "BM, BK = 64, 8\nWIDTH = BM + 4\n"),
                ("cuda.shared.array((BK, BM), np.float32)", "cuda.shared.array((BK, WIDTH), np.float32)"),
                (_STORE, "tile[k, row]"),
                (_LOAD, "tile[k, t]"),
            ),
        ),
        Variant("moved too little", "budget", ((_STORE, "tile[k, row ^ k]"), (_LOAD, "tile[k, t ^ k]"))),
        Variant("moved when stored alone", "result", ((_LOAD, "tile[k, t]"),)),
        Variant("moved past the end", "bounds", ((_STORE, "tile[k, row + k * 4]"), (_LOAD, "tile[k, t + k * 4]"))),
        Variant("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
        Variant(
            "no tile at all",
            "budget",
            ((f"T[start + k, top + t] = {_LOAD}", "T[start + k, top + t] = A[top + t, start + k]"),),
        ),
        Variant("a row too many", "bounds", (("top + t < A.shape[0]", "top + t <= A.shape[0]"),)),
        Variant(
            "turned round and round",
            "solved",
            ((_STORE, "tile[k, (row + k * 4) % BM]"), (_LOAD, "tile[k, (t + k * 4) % BM]")),
        ),
        Variant(
            "moved into the other half, too",
            "solved",
            ((_STORE, "tile[k, row ^ k * 4 + 32]"), (_LOAD, "tile[k, t ^ k * 4 + 32]")),
        ),
    ),
)
