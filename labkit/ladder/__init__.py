"""What every operation is made of: problems, ladders of steps, and the launches of a step.

An operation is a package of labkit with a `problem.py`. A ladder is a folder of it, or the package itself, with a file
a step, `sNN_slug.py`. A step's file has a kernel named like its slug and a function `launches(*operands)`, which checks
the operands and gives a list of `Launch`. Where a step computes in several formats, `launches` also takes `format`;
where it needs memory beside its operands, it takes `workspace`, and asks that for arrays; and `limit_bytes` where it
can do with less of that. The ladder's `__init__.py` says what its steps compute:

    PROBLEM     the class of problems, a subclass of `labkit.ladder.Problem`
    FORMATS     the formats of its operands, from `labkit.formats`
    EXAMPLES    sizes of small problems, awkward ones, which every step must get right
    BENCHED     sizes of problems to be timed
    STANDING    sizes of the problem whose run in the simulator says where a step stands under a roofline
    COMPARED    sizes of the problem with which recorded steps are compared, if not the last of BENCHED
    RECORD      the name under which they are recorded, if not the operation's

A step's file may say otherwise for itself. A step that may be further off than others of its ladder says so too, and
one that makes larger blocks for other problems than these:

    ALLOWING    a subclass of PROBLEM that allows its errors, of which its EXAMPLES are
    LARGEST     sizes of problems of which it makes the largest blocks, or those with most work for a thread

Nothing else lists steps: benches, tests, standings and roofline dots are derived from the folders.
"""

from labkit.ladder.discovery import every_ladder, ladder, ladders
from labkit.ladder.launch import MOST_BLOCKS, Launch, TooLarge
from labkit.ladder.problem import Expected, Problem, relative_error
from labkit.ladder.step import Ladder, Simulated, Step

__all__ = [
    "MOST_BLOCKS",
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
