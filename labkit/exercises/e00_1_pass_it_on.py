"""Exercise 00.1: a circle of threads that pass a number on, with one barrier missing."""

import numpy as np

from labkit.exercises.budget import Duty
from labkit.exercises.exercise import Exercise, Launch
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


EXERCISE = Exercise(
    id="00.1",
    title="Put the barrier back",
    task="One barrier is missing. Put it back, so that nobody's number is overwritten before it was taken.",
    points=1,
    function="mended",
    launch=launch,
    sizes=SIZES,
    drawn=((range(6, 20),),),
)
