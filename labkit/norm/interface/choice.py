"""Which step computes a norm: of those that take the images as they lie, the one that crosses memory least often.

In training that is one that reads each value once. Where a block keeps a channel in its registers, and all such blocks
run at once, no block waits for another ("in_registers"). Larger channels are kept by a cluster:
"overlapped", whose copies the copy engine makes, where planes are rows of 128 bytes, else "one_read". Where neither
does, or the GPU has no clusters, each value is read twice, and the second time some are found in L2. In NHWC blocks
that keep some channels together have to meet, each time; an H100 was seen to take longer for that than for a second
read of what does not fit on the chip ("first_kept"), but not for both arrays of the gradients.

Rows have a chooser of their own, `labkit.norm.row_steps`.
"""

from math import prod

from labkit import cuda, ptx
from labkit.arrays.addresses import PIECE_BYTES, address_of
from labkit.arrays.workspace import Workspace
from labkit.formats import Format
from labkit.ladder import Launch, Problem, Step, TooLarge, ladder
from labkit.norm.backward import BatchBackward
from labkit.norm.inference import BatchInference
from labkit.norm.problem import BatchForward
from labkit.norm.row_steps import step_of
from labkit.norm.rows.problem import RowForward
from labkit.norm.rows_backward.problem import RowBackward
from labkit.ptx.capabilities import runs

STEPS = {  # ladder and step, the best first
    (BatchForward, "NCHW"): [
        ("batch", "in_registers"),
        ("batch", "overlapped"),
        ("batch", "one_read"),
        ("batch", "last_first"),
    ],
    (BatchForward, "NHWC"): [
        ("channels_last", "in_registers"),
        ("channels_last", "first_kept"),
        ("channels_last", "columns"),
    ],
    (BatchBackward, "NCHW"): [
        ("batch_backward", "in_registers"),
        ("batch_backward", "overlapped"),
        ("batch_backward", "one_read"),
        ("batch_backward", "last_first"),
    ],
    (BatchBackward, "NHWC"): [
        ("channels_last_backward", "in_registers"),
        ("channels_last_backward", "one_read"),
        ("channels_last_backward", "last_first"),
    ],
    (BatchInference, "NCHW"): [("batch_inference", "planes")],
    (BatchInference, "NHWC"): [("batch_inference", "pixels")],
}
AT_ONCE = "in_registers"  # each block reads, sums and writes: a second one in its place would have to wait for that
SM_THREADS = 2048
MEETING = {("channels_last", "first_kept"), ("channels_last_backward", "one_read")}  # all blocks wait for one another


def launches_of(arrays: tuple, asked: Problem, format: Format, workspace: Workspace) -> list[Launch]:
    """What the best step launches for arrays that fit the problem.

    Raises
    ------
    ValueError
        There are too many images or channels for any of them.
    """
    why = ""
    for name, slug in _steps_for(asked, format):
        step = ladder("norm", name).step(slug)
        if format not in step.formats or not _runs_here(step, format):
            continue
        try:
            made = step.launches(*arrays, asked, format=format, workspace=workspace)
        except TooLarge as error:
            why = error.why
            continue
        if all(map(_begins_well, made)) and (slug != AT_ONCE or _runs_at_once(made)):
            return made
    raise ValueError(f"{why}: take fewer images or channels at a time")


def _steps_for(asked: Problem, format: Format) -> list[tuple[str, str]]:
    """Ladders and steps, the best first."""
    if isinstance(asked, RowForward):
        return [("rows", step_of(asked, format).slug), ("rows", "three_reads")]
    if isinstance(asked, RowBackward):
        return [("rows_backward", step_of(asked, format).slug), ("rows_backward", "sums_first")]
    return STEPS[type(asked), asked.layout]


def _runs_here(step: Step, format: Format) -> bool:
    """Whether this GPU has what a step's kernel uses, and room for all blocks at once where they wait for another."""
    gpu = cuda.get_current_device()
    if not runs(step.kernel, format.number, tuple(gpu.compute_capability)):
        return False
    return (step.ladder.name, step.slug) not in MEETING or gpu.MULTIPROCESSOR_COUNT >= step.SMS


def _begins_well(launch: Launch) -> bool:
    """Whether all that the copy engine moves begins at a multiple of 16 bytes."""
    moved = [one.array for one in launch.arguments if isinstance(one, ptx.TensorMap)]
    return not any(address_of(X) % PIECE_BYTES for X in moved)


def _runs_at_once(made: list[Launch]) -> bool:
    """Whether there is room for all threads of these launches together, as far as their number tells."""
    threads = max(prod(_sides(one.grid)) * prod(_sides(one.block)) for one in made)
    return threads <= SM_THREADS * cuda.get_current_device().MULTIPROCESSOR_COUNT


def _sides(size):
    return size if isinstance(size, tuple) else (size,)
