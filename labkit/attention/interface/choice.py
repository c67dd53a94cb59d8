"""Which step computes attention: of those that take its format on this GPU, the fastest."""

from labkit import cuda
from labkit.arrays.workspace import Workspace
from labkit.attention.problem import AttentionForward
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import Launch, Step, ladder
from labkit.ptx.capabilities import runs

STEPS = {FP32: ["rows"], BF16: ["pipelined"], FP16: ["pipelined"]}  # the best first
FORMATS = tuple(STEPS)


def step_for(format: Format) -> Step:
    """The step for a format.

    Raises
    ------
    ValueError
        None of them runs on this GPU.
    """
    capability = tuple(cuda.get_current_device().compute_capability)
    for slug in STEPS[format]:
        step = ladder("attention", "forward").step(slug)
        if runs(step.kernel, format.number, capability):
            return step
    written = ".".join(map(str, capability[:2]))
    raise ValueError(f"no step takes {format} on a GPU of compute capability {written}: convert Q, K and V to float32")


def launches_of(arrays: tuple, asked: AttentionForward, format: Format, workspace: Workspace) -> list[Launch]:
    """What the best step launches for arrays that fit the problem."""
    return step_for(format).launches(*arrays, asked, format=format, workspace=workspace)
