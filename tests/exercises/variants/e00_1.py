"""Other answers to exercise 00.1."""

from . import Variant

_STRAIGHT_FROM_X = """@cuda.jit
def mended(x, out, rounds):
    me = cuda.threadIdx.x
    out[me] = x[(me - rounds) % 64]
"""

_TWO_HANDS = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array((2, 64), np.float32)
    me = cuda.threadIdx.x
    hand[0, me] = x[me]
    cuda.syncthreads()
    for r in range(rounds):
        hand[1 - r % 2, me] = hand[r % 2, (me - 1) % 64]
        cuda.syncthreads()
    out[me] = hand[rounds % 2, me]
"""

_BARRIER = "        cuda.syncthreads()\n"

_TAKE = "        taken = hand[(me - 1) % 64]\n"

_PUT = "        hand[me] = taken\n"

VARIANTS = (
    Variant("the bug itself", "race", ((_TAKE + _BARRIER, _TAKE),)),
    Variant("the other barrier missing", "race", ((_PUT + _BARRIER, _PUT),)),
    Variant("no barrier in the loop", "race", ((_TAKE + _BARRIER + _PUT + _BARRIER, _TAKE + _PUT),)),
    Variant("both barriers after the store", "race", ((_TAKE + _BARRIER, _TAKE), (_PUT, _PUT + _BARRIER))),
    Variant(
        "a barrier that half of the threads pass",
        "barrier",
        ((_TAKE + _BARRIER, _TAKE + "        if me < 32:\n    " + _BARRIER),),
    ),
    Variant("the other neighbour", "result", (("me - 1", "me + 1"),)),
    Variant("round and round", "result", (("hand[(me - 1) % 64]", "hand[max(me - 1, 0)]"),)),
    Variant("no rounds at all", "result", (("range(rounds)", "range(0)"),)),
    Variant("no more rounds than the book's", "result", (("range(rounds)", "range(min(rounds, 5))"),)),
    Variant("nothing passed on", "duty", cell=_STRAIGHT_FROM_X),
    Variant("two hands in turn", "solved", cell=_TWO_HANDS),
)
