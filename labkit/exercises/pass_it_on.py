"""A ring of threads that pass a number on, with one barrier missing."""

from functools import partial

import numpy as np

from labkit.checking import Above, Dependence, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import EXCHANGED
from labkit.exercises.problems import expect
from labkit.simulator.disturbance import BARRIERS, SHARED_LOADS

THREADS = 64
WHY = "take a number from a neighbour's hand in each round"


def make_launch(rng, rounds):
    x, before = rng.standard_normal(THREADS, np.float32), np.arange(THREADS) - rounds
    return Launch(
        label=f"{THREADS} threads, {rounds} round{'s' if rounds != 1 else ''}",
        args=(x, unwritten_array((THREADS,)), rounds),
        outputs={1: expect(np.roll(x, rounds).astype(np.float64))},
        grid=(1,),
        block=(THREADS,),
        duties=(Duty(EXCHANGED, THREADS * rounds, "each thread takes a neighbour's number in each round"),),
        dependences=(
            Dependence(SHARED_LOADS, WHY, partial(_disturbed_results, np.roll(x, rounds), rounds)),
            Dependence(BARRIERS, "let the threads wait for one another"),
        )
        * (5 <= rounds < 20),
        mistakes=(
            Mistake("nothing were passed on", lambda: {1: expect(x.astype(float))}),
            Mistake(
                "each thread took from the thread after it", lambda: {1: expect(np.roll(x, -rounds).astype(float))}
            ),
            Mistake("thread 0 took from no other", lambda: {1: expect(x[np.maximum(before, 0)].astype(float))}),
            Mistake("there were one round more", lambda: {1: expect(np.roll(x, rounds + 1).astype(float))}),
        ),
    )


def _disturbed_results(values, rounds, disturbance):
    """Return the results if each number goes through shared memory once or twice per round."""
    results, loaded = [], values.astype(np.float64)
    for loads in range(1, 2 * rounds + 2):
        loaded = disturbance.factor * loaded + disturbance.shift
        results += [expect(loaded, loads)] if loads >= rounds else []
    return results


EXERCISE = Exercise(
    title="Put the barrier back",
    task="One barrier is missing. Put it back, so that no number is overwritten before it is taken.",
    points=1,
    function="mended",
    make_launch=make_launch,
    finds_fault=True,
    sizes=((1,), (2,), (5,)),  # rounds
    random_sizes=((range(7, 20),), (Above(64),), ((0,),)),
)
