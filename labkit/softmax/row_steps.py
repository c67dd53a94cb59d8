"""Which step computes a softmax of rows, or its gradient: of those that take them, the one for such wide rows."""

from functools import cache

from labkit import cuda
from labkit.arrays.workspace import Workspace
from labkit.formats import BF16, FP32, Format
from labkit.ladder import Launch, Step, TooLarge, ladder
from labkit.ptx.capabilities import runs
from labkit.softmax.problem import Backward, Forward, Rows

ENDLESS = 2**31
STEPS = {  # by the widest row that a step is chosen for, the narrowest first
    (Forward, FP32): {"warps": 512, "on_chip": 32_768, "clusters": 131_072, "online": ENDLESS},
    (Forward, BF16): {"warps": 512, "on_chip": 32_768, "clusters": 131_072},
    (Backward, FP32): {"warps": 512, "on_chip": 8192, "clusters": 131_072, "fused": ENDLESS},
    (Backward, BF16): {"warps": 512, "on_chip": 8192, "clusters": 131_072},
}
LADDERS = {Forward: "forward", Backward: "backward"}


@cache
def step_of(problem: Rows, format: Format = FP32) -> Step:
    """The step for a problem.

    Raises
    ------
    TooLarge
        No step takes rows of that width in this format.
    """
    widest = STEPS[type(problem), format]
    for slug, most in widest.items():
        if problem.columns <= most:
            return ladder("softmax", LADDERS[type(problem)]).step(slug)
    why = f"a row has {problem.columns} values of {format}, and steps take {max(widest.values())}"
    raise TooLarge(why, "convert it to float32")


def launches_of(arrays: tuple, problem: Rows, format: Format, workspace: Workspace) -> list[Launch]:
    """What the step launches for arrays of the device; on a GPU without clusters one that reads wide rows again.

    Raises
    ------
    ValueError
        No step takes such rows here.
    """
    step, (*_, endless) = step_of(problem, format), STEPS[type(problem), FP32]
    if not runs(step.kernel, format.number, tuple(cuda.get_current_device().compute_capability)):
        if format != FP32:
            raise ValueError(
                f"rows of {problem.columns} values of {format} take a GPU of compute capability 9.0: "
                "convert them to float32"
            )
        step = step.ladder.step(endless)
    return step.launches(*arrays, problem, format=format, workspace=workspace)
