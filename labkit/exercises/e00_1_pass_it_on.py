"""Exercise 00.1: a circle of threads that pass a number on, with one barrier missing."""

import numpy as np

from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect, unwritten

THREADS = 64
SIZES = (1, 2, 5)  # rounds


def launches(rng):
    for rounds in SIZES:
        x = rng.standard_normal(THREADS, np.float32)
        yield Launch(
            label=f"{THREADS} threads, {rounds} round{'s' if rounds > 1 else ''}",
            args=(x, unwritten((THREADS,)), rounds),
            outputs={1: expect(np.roll(x, -rounds).astype(np.float64))},
            grid=(1,),
            block=(THREADS,),
        )


_BARRIER = "        cuda.syncthreads()\n"
_TAKE = "        taken = hand[(me + 1) % 64]\n"
_PUT = "        hand[me] = taken\n"

EXERCISE = Exercise(
    id="00.1",
    title="Put the barrier back",
    task="One barrier is missing. Put it back, so that nobody's number is overwritten before it was taken.",
    points=1,
    function="mended",
    launches=launches,
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
    ),
)
