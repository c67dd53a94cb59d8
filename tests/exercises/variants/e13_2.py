"""Other answers to exercise 13.2."""

from . import Variant

_STORE, _LOAD = "tile[line, lane ^ 4 * line]", "tile[c, pixel ^ 4 * c]"
_DIRECT = """
CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    i = cuda.threadIdx.y * PIXELS + cuda.threadIdx.x
    pixel, c = cuda.blockIdx.x * PIXELS + i // CHANNELS, i % CHANNELS
    if pixel < y.shape[0]:
        y[pixel, c] = x[c, pixel]
"""

VARIANTS = (
    Variant("the kernel as it stands there", "budget", ((_STORE, "tile[line, lane]"), (_LOAD, "tile[c, pixel]"))),
    Variant("the recipe for squares", "budget", ((_STORE, "tile[line, lane ^ line]"), (_LOAD, "tile[c, pixel ^ c]"))),
    Variant(
        "twice the channel", "budget", ((_STORE, "tile[line, lane ^ 2 * line]"), (_LOAD, "tile[c, pixel ^ 2 * c]"))
    ),
    Variant("the store alone", "result", ((_LOAD, "tile[c, pixel]"),)),
    Variant("the load alone", "result", ((_STORE, "tile[line, lane]"),)),
    Variant(
        "a padded tile",
        "budget",
        (("CHANNELS, PIXELS), np", "CHANNELS, 36), np"), (_STORE, "tile[line, lane]"), (_LOAD, "tile[c, pixel]")),
    ),
    Variant("no tile", "budget", cell=_DIRECT),
    Variant("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
    Variant("no guard of x", "bounds", (("    if first + lane < x.shape[1]:\n", "    if True:\n"),)),
    Variant(
        "a place beyond the row", "bounds", ((_STORE, "tile[line, lane + 4 * line]"), (_LOAD, "tile[c, pixel + 4 * c]"))
    ),
    Variant(
        "by a sum",
        "solved",
        ((_STORE, "tile[line, (lane + 4 * line) % PIXELS]"), (_LOAD, "tile[c, (pixel + 4 * c) % PIXELS]")),
    ),
    Variant(
        "the groups backwards",
        "solved",
        ((_STORE, "tile[line, lane ^ 28 - 4 * line]"), (_LOAD, "tile[c, pixel ^ 28 - 4 * c]")),
    ),
)
