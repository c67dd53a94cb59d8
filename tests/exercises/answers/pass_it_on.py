"""Other answers to pass-it-on."""

from . import Answer, right, shortcut, wrong

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

_RING = """@cuda.jit
def mended(x, out, rounds):
    hands = cuda.shared.array((3, 64), np.float32)
    me = cuda.threadIdx.x
    hands[0, me] = x[me]
    for r in range(rounds):
        cuda.syncthreads()
        hands[(r + 1) % 3, me] = hands[r % 3, me - 1 if me > 0 else 63]
    out[me] = hands[rounds % 3, me]
"""

ONE_HOP = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    cuda.syncthreads()
    out[me] = hand[(me - rounds) % 64]
"""

COUNTED_HOPS = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    cuda.syncthreads()
    taken = np.float32(0)
    for r in range(rounds):
        taken = hand[(me - 1 - r) % 64]
    out[me] = taken if rounds else x[me]
"""

NOTHING_TAKEN = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = 0
    cuda.syncthreads()
    out[me] = x[(me - rounds) % 64]
    for r in range(rounds):
        out[me] += hand[(me - r) % 64]
"""

THROUGH_OUT = """@cuda.jit
def mended(x, out, rounds):
    me = cuda.threadIdx.x
    out[me] = x[me]
    cuda.syncthreads()
    for _ in range(rounds):
        taken = out[(me - 1) % 64]
        cuda.syncthreads()
        out[me] = taken
        cuda.syncthreads()
"""

HOP_TIMES_ONES = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    one = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    one[me] = 1
    cuda.syncthreads()
    v = hand[(me - rounds) % 64]
    for r in range(rounds):
        v *= one[me]
    out[me] = v
"""

OWN_HAND = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    v = x[(me - rounds + 1 + 64 * rounds) % 64] if rounds > 0 else x[me]
    for i in range(rounds - 1):
        hand[me] = v
        v = hand[me]
    if rounds > 0:
        cuda.syncthreads()
        hand[me] = v
        cuda.syncthreads()
        v = hand[(me - 1) % 64]
    out[me] = v
"""

ONES_FROM_HANDS = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = 1
    cuda.syncthreads()
    value = x[(me - rounds) % 64]
    for r in range(rounds):
        value *= hand[(me - r) % 64]
    out[me] = value
"""

VARIANTS = (
    Answer("the bug itself", "race", ((_TAKE + _BARRIER, _TAKE),)),
    Answer("the other barrier missing", "race", ((_PUT + _BARRIER, _PUT),)),
    Answer("no barrier in the loop", "race", ((_TAKE + _BARRIER + _PUT + _BARRIER, _TAKE + _PUT),)),
    Answer("both barriers after the store", "race", ((_TAKE + _BARRIER, _TAKE), (_PUT, _PUT + _BARRIER))),
    Answer(
        "a barrier that half of the threads pass",
        "barrier",
        ((_TAKE + _BARRIER, _TAKE + "        if me < 32:\n    " + _BARRIER),),
    ),
    Answer(
        "the other neighbour", "result", (("me - 1", "me + 1"),), mistake="each thread took from the thread after it"
    ),
    Answer(
        "round and round",
        "result",
        (("hand[(me - 1) % 64]", "hand[max(me - 1, 0)]"),),
        mistake="thread 0 took from no other",
    ),
    Answer("no rounds at all", "result", (("range(rounds)", "range(0)"),), mistake="nothing were passed on"),
    Answer("no more rounds than the book's", "result", (("range(rounds)", "range(min(rounds, 5))"),)),
    Answer("nothing passed on", "duty", cell=_STRAIGHT_FROM_X),
    Answer("two hands in turn", "solved", cell=_TWO_HANDS),
    Answer(
        "a round too many", "result", (("range(rounds)", "range(rounds + 1)"),), mistake="there were one round more"
    ),
)

RIGHT = (
    right("three hands in a ring", cell=_RING),
    right("the sum of what is beside one", ("(me - 1) % 64", "(me + 63) % 64")),
    right("a while loop", ("    for _ in range(rounds):\n", "    for r in range(rounds, 0, -1):\n")),
)

WRONG = (
    wrong("no more rounds than are published", ("range(rounds)", "range(min(rounds, 20))")),
    wrong("no more rounds than threads", ("range(rounds)", "range(min(rounds, 64))")),
    wrong("at least one round", ("range(rounds)", "range(max(rounds, 1))")),
    wrong("each warp for itself", ("hand[(me - 1) % 64]", "hand[me // 32 * 32 + (me - 1) % 32]")),
    wrong(
        "a barrier in the first rounds alone",
        ("for _ in range", "for r in range"),
        (
            "        cuda.syncthreads()\n        hand",
            "        if r < 20:\n            cuda.syncthreads()\n        hand",
        ),
    ),
)

SHORTCUTS = (
    shortcut("one hop over all rounds", cell=ONE_HOP),
    shortcut("one hop, and loads that are counted and dropped", cell=COUNTED_HOPS),
    shortcut("straight from x, and zeros from the hands", cell=NOTHING_TAKEN),
    shortcut("through global memory", cell=THROUGH_OUT),
    shortcut("straight from x, times ones from the hands", cell=ONES_FROM_HANDS),
    shortcut("one hop, times ones from the hands", cell=HOP_TIMES_ONES),
    shortcut("its own hand again and again, then a neighbour's", cell=OWN_HAND),
)
