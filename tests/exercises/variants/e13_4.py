"""Other answers to exercise 13.4."""

from . import Variant

_STORE = "arrays[field, first + t] = run[FIELDS * t + field]"
_DIRECT = """
@cuda.jit
def to_arrays(structs, arrays):
    s = cuda.grid(1)
    if s < arrays.shape[1]:
        for field in range(7):
            arrays[field, s] = structs[7 * s + field]
"""
_BY_ELEMENT = """
FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    for i in range(t, RUN, STRUCTS):
        if FIELDS * first + i < structs.size:
            run[i] = structs[FIELDS * first + i]
    cuda.syncthreads()
    for i in range(t, RUN, STRUCTS):
        s, field = i // FIELDS, i % FIELDS
        if first + s < arrays.shape[1]:
            arrays[field, first + s] = run[i]
"""
_TURNED = """
FIELDS, STRUCTS = 7, 128


@cuda.jit
def to_arrays(structs, arrays):
    tile = cuda.shared.array((FIELDS, STRUCTS), np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    for i in range(t, FIELDS * STRUCTS, STRUCTS):
        if FIELDS * first + i < structs.size:
            tile[i % FIELDS, i // FIELDS] = structs[FIELDS * first + i]
    cuda.syncthreads()
    if first + t < arrays.shape[1]:
        for field in range(FIELDS):
            arrays[field, first + t] = tile[field, t]
"""

VARIANTS = (
    Variant("straight from structs", "budget", cell=_DIRECT),
    Variant("stored in the order of the run", "budget", cell=_BY_ELEMENT),
    Variant("turned as it is stored into the tile", "budget", cell=_TURNED),
    Variant("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
    Variant(
        "no guard of structs",
        "bounds",
        (("        if FIELDS * first + i < structs.size:\n    ", "        if True:\n    "),),
    ),
    Variant("no guard of arrays", "bounds", (("if first + t < arrays.shape[1]:", "if True:"),)),
    Variant("one round alone", "uninitialised", (("range(t, RUN, STRUCTS)", "range(t, STRUCTS, STRUCTS)"),)),
    Variant("six fields", "unwritten", (("for field in range(FIELDS)", "for field in range(FIELDS - 1)"),)),
    Variant("structs eight apart", "bounds", (("run[FIELDS * t + field]", "run[8 * t + field]"),)),
    Variant("the first block's structs again", "result", (("structs[FIELDS * first + i]", "structs[i]"),)),
    Variant(
        "fields from the last to the first",
        "solved",
        (("for field in range(FIELDS)", "for field in range(FIELDS - 1, -1, -1)"),),
    ),
)
