"""Other answers to exercise 05.3."""

from . import Variant

_STORE, _LOAD = "tile[k, row ^ k * 4]", "tile[k, t ^ k * 4]"

VARIANTS = (
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
)
