"""Which step computes attention: of those that take such heads on this GPU, the fastest."""

from math import ceil
from typing import Literal

from labkit import cuda
from labkit.attention.decode.problem import AttentionDecode
from labkit.attention.decode.s02_split import parts_of
from labkit.attention.decode.tiles import blocks_at_once, planes_of
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import Step, ladder
from labkit.ptx.capabilities import runs

WIDEST = 256  # head_dim
FORWARD = {"persistent": 128, "ping_pong": WIDEST, "pipelined": WIDEST}  # head_dim at most, the best first
BACKWARD = {"wgmma": 128, "mma": WIDEST}
IN_ANY_ORDER = {"bulk_reduction": 128}  # of BACKWARD, which blocks add up as they come
STEPS = {
    "forward": {FP32: {"rows": WIDEST}, BF16: FORWARD, FP16: FORWARD},
    "backward": {FP32: {"recomputed": WIDEST}, BF16: BACKWARD, FP16: BACKWARD},
}
FORMATS = FP32, BF16, FP16
FULL = 0.95  # of the GPU's places for blocks, or more


def step_for(
    direction: Literal["forward", "backward"], head_dim: int, format: Format, deterministic: bool = True
) -> Step:
    """The step for heads of such a size in a format; one that gives the same bits each time, if it is deterministic.

    Raises
    ------
    ValueError
        None of them runs on this GPU.
    """
    capability = tuple(cuda.get_current_device().compute_capability)
    steps = STEPS[direction][format]
    if not deterministic and steps is BACKWARD:
        steps = IN_ANY_ORDER | steps
    for slug, most in steps.items():
        step = ladder("attention", direction).step(slug)
        if head_dim <= most and runs(step.kernel, format.number, capability):
            return step
    written = ".".join(map(str, capability[:2]))
    raise ValueError(f"no step takes {format} on a GPU of compute capability {written}: convert Q, K and V to float32")


def step_for_cache(problem: AttentionDecode, alike: bool) -> Step:
    """The step for queries of a cache; `alike` says whether all sequences have as many keys.

    Blocks that have as much to read each need no list of tiles to share: one for each head, where these fill the GPU
    once or several times, or as many for a head as fill it.
    """
    heads, places = planes_of(problem) * problem.batch, blocks_at_once()
    slug = "stream_k"
    if alike and heads >= FULL * places * ceil(heads / places):
        slug = "one_block"
    elif alike and FULL * places <= heads * parts_of(problem) <= places:
        slug = "split"
    return ladder("attention", "decode").step(slug)
