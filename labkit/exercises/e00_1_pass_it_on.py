"""Exercise 00.1: a circle of threads that pass a number on, with one barrier missing."""

import numpy as np

from labkit.exercises.budget import Duty
from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect, unwritten

THREADS = 64
SIZES = ((1,), (2,), (5,))  # rounds


def launch(rng, rounds):
    x = rng.standard_normal(THREADS, np.float32)
    return Launch(
        label=f"{THREADS} threads, {rounds} round{'s' if rounds > 1 else ''}",
        args=(x, unwritten((THREADS,)), rounds),
        outputs={1: expect(np.roll(x, -rounds).astype(np.float64))},
        grid=(1,),
        block=(THREADS,),
        duties=(Duty("shared loads", THREADS * rounds, "each thread takes a number in each round"),),
    )


_STRAIGHT_FROM_X = """@cuda.jit
def mended(x, out, rounds):
    me = cuda.threadIdx.x
    out[me] = x[(me + rounds) % 64]
"""
_TWO_HANDS = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array((2, 64), np.float32)
    me = cuda.threadIdx.x
    hand[0, me] = x[me]
    cuda.syncthreads()
    for r in range(rounds):
        hand[1 - r % 2, me] = hand[r % 2, (me + 1) % 64]
        cuda.syncthreads()
    out[me] = hand[rounds % 2, me]
"""
_BARRIER = "        cuda.syncthreads()\n"
_TAKE = "        taken = hand[(me + 1) % 64]\n"
_PUT = "        hand[me] = taken\n"

EXERCISE = Exercise(
    id="00.1",
    title="Put the barrier back",
    task="One barrier is missing. Put it back, so that nobody's number is overwritten before it was taken.",
    points=1,
    function="mended",
    launch=launch,
    sizes=SIZES,
    drawn=((range(6, 20),),),
    variants=(
        Variant("the bug itself", "race", ((_TAKE + _BARRIER, _TAKE),)),
        Variant("the other barrier missing", "race", ((_PUT + _BARRIER, _PUT),)),
        Variant("no barrier in the loop", "race", ((_TAKE + _BARRIER + _PUT + _BARRIER, _TAKE + _PUT),)),
        Variant("both barriers after the store", "race", ((_TAKE + _BARRIER, _TAKE), (_PUT, _PUT + _BARRIER))),
        Variant(
            "a barrier that half of the threads pass",
            "barrier",
            ((_TAKE + _BARRIER, _TAKE + "        if me < 32:\n    " + _BARRIER),),
        ),
        Variant("the other neighbour", "result", (("me + 1", "me - 1"),)),
        Variant("round and round", "bounds", ((" % 64", ""),)),
        Variant("no rounds at all", "result", (("range(rounds)", "range(0)"),)),
        Variant("no more rounds than the book's", "result", (("range(rounds)", "range(min(rounds, 5))"),)),
        Variant("nothing passed on", "duty", cell=_STRAIGHT_FROM_X),
        Variant("two hands in turn", "solved", cell=_TWO_HANDS),
    ),
)
