"""Problems, ladders of steps, and the launches of a step: the parts of every operation.

An operation is a package of labkit with a `problem.py`. A ladder is kernels for one of its computations, from naive to
fastest: a folder in the package, or the package itself, with one file per step, `sNN_slug.py`. A step's file has a
kernel named like its slug and a function
`launches(*operands)`, which checks the operands and returns a list of `Launch`. The last operand is the problem, where
arrays alone do not tell the sizes. A step that computes in several formats also has the parameter `format`; one that
needs further memory, `workspace`; one that can do with less of it, `limit_bytes`. The ladder's `__init__.py` declares
what its steps compute, sizes as tuples of arguments of PROBLEM:

    PROBLEM         the class of problems, a subclass of `labkit.ladder.Problem`
    FORMATS         the formats of its operands, from `labkit.formats`
    EXAMPLES        sizes of small, awkward problems, which every step must compute correctly
    BENCHED         sizes of the timed problems
    ROOFLINE_PROBLEM  sizes of the problem whose simulated run gives a step's point under a roofline
    COMPARED        sizes of the problem by which recorded steps are compared; default: the last of BENCHED
    RECORD          the record in `labkit/results/` that `labkit bench RECORD` writes; default: the operation's name

A step's file may override these for itself, and declare more:

    LOOSER_PROBLEM  a subclass of PROBLEM with larger error bounds, to which the EXAMPLES of this step belong
    LARGEST         sizes of further problems with the largest blocks of the step, or the most work per thread
    SUPPORTED       values of the problem's fields that the step takes; a field that is not named may have any
    DETERMINISTIC   False if two runs may differ in their last bits
    ONE_WAVE_ONLY   True for a step that calls choose only if all its blocks are resident at once
    QUICK_TO_SIMULATE  True for the step that calls prefer where there is no GPU

Steps are listed nowhere else: benches, tests and roofline points are derived from the folders. `every_ladder()` lists
all ladders, `ladders(operation)` those of an operation, `ladder(operation, name)` is one.
"""

from labkit.ladder.discovery import every_ladder, ladder, ladders
from labkit.ladder.launch import MAX_BLOCKS, Launch, TooLarge
from labkit.ladder.problem import Expected, Problem, relative_error
from labkit.ladder.step import Ladder, Simulated, Step

__all__ = [
    "MAX_BLOCKS",
    "Expected",
    "Ladder",
    "Launch",
    "Problem",
    "Simulated",
    "Step",
    "TooLarge",
    "every_ladder",
    "ladder",
    "ladders",
    "relative_error",
]
