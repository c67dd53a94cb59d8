"""Other answers to exercise 08.3."""

from . import Variant

_INSIDE = "np.uint32(row) < np.uint32(H) and np.uint32(col) < np.uint32(W)"
_VALID = "4 if inside else 0"
_COPY = "ptx.cp_async(tile, (i, t), x, row * W + col, 4, 4 if inside else 0)"

VARIANTS = (
    Variant(
        "by registers",
        "duty",
        ((_COPY, "tile[i, t] = x[row * W + col] if inside else np.float32(0)"),),
    ),
    Variant(
        "zeros by threads",
        "budget",
        ((_COPY, f"if inside:\n            {_COPY[:-19]}4)\n        else:\n            tile[i, t] = 0"),),
    ),
    Variant("pixels alone", "uninitialised", ((_COPY, f"if inside:\n            {_COPY[:-19]}4)"),)),
    Variant(
        "two copies",
        "budget",
        ((_COPY, f"if inside:\n            {_COPY[:-19]}4)\n        else:\n            {_COPY[:-19]}0)"),),
    ),
    Variant("all bytes everywhere", "bounds", ((_VALID, "4"),)),
    Variant("no wait", "in-flight", (("    ptx.cp_async_wait(0)\n", ""),)),
    Variant("no commit", "in-flight", (("    ptx.cp_async_commit()\n", ""),)),
    Variant("waiting for all but one", "in-flight", (("cp_async_wait(0)", "cp_async_wait(1)"),)),
    Variant("rows alone", "bounds", ((_INSIDE, "np.uint32(row) < np.uint32(H)"),)),
    Variant("signed, one end alone", "result", ((_INSIDE, "row < H and col < W"),)),
    Variant("the place in a taller image", "result", (("row * W + col", "row * H + col"),)),
    Variant("both ends", "solved", ((_INSIDE, "0 <= row < H and 0 <= col < W"),)),
    Variant("by multiplication", "solved", ((_VALID, "4 * inside"),)),
    Variant(
        "a wait inside of the loop",
        "solved",
        (
            (
                "    ptx.cp_async_commit()\n    ptx.cp_async_wait(0)\n",
                "        ptx.cp_async_commit()\n        ptx.cp_async_wait(0)\n",
            ),
        ),
    ),
)
