"""Which step computes attention: of those that take such heads on this GPU, the fastest."""

from labkit import cuda
from labkit.arrays.workspace import Workspace
from labkit.attention.problem import AttentionForward
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import Launch, Step, ladder
from labkit.ptx.capabilities import runs

WIDEST = 256  # head_dim
BY_TENSOR_CORES = {"persistent": 128, "ping_pong": WIDEST, "pipelined": WIDEST}  # head_dim at most, the best first
STEPS = {FP32: {"rows": WIDEST}, BF16: BY_TENSOR_CORES, FP16: BY_TENSOR_CORES}
FORMATS = tuple(STEPS)


def step_for(head_dim: int, format: Format) -> Step:
    """The step for heads of such a size in a format.

    Raises
    ------
    ValueError
        None of them runs on this GPU.
    """
    capability = tuple(cuda.get_current_device().compute_capability)
    for slug, most in STEPS[format].items():
        step = ladder("attention", "forward").step(slug)
        if head_dim <= most and runs(step.kernel, format.number, capability):
            return step
    written = ".".join(map(str, capability[:2]))
    raise ValueError(f"no step takes {format} on a GPU of compute capability {written}: convert Q, K and V to float32")


def launches_of(arrays: tuple, asked: AttentionForward, format: Format, workspace: Workspace) -> list[Launch]:
    """What the best step launches for arrays that fit the problem."""
    return step_for(asked.head_dim, format).launches(*arrays, asked, format=format, workspace=workspace)
