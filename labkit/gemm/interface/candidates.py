"""The ways in which a product can be computed, the most promising first: with which kernel, cut up how."""

from typing import NamedTuple

import numpy as np

from labkit import cuda
from labkit.gemm.interface.arrange import in_pieces
from labkit.gemm.interface.precisions import Precision
from labkit.gemm.library.tilings import Tiling, Work, tilings
from labkit.ladder import Step, ladder
from labkit.ptx.capabilities import CAPABILITIES, lacks
from labkit.rebinding import names_of


class Candidate(NamedTuple):
    """A step of a ladder by its slug; "general", the library's kernel, and how it cuts the product up; or "gemv".

    splits: parts of k, each of which is multiplied by itself, for a step.
    """

    step: str
    tiling: Tiling | None = None
    splits: int = 1

    def __str__(self):
        if self.tiling is not None:
            return f"{self.step} ({_words(self.tiling)})"
        return self.step if self.splits == 1 else f"{self.step} (splits {self.splits})"

    def as_data(self) -> dict:
        """As JSON gives it back."""
        return {"step": self.step, "tiling": self.tiling and self.tiling._asdict(), "splits": self.splits}


def _words(tiling):
    return ", ".join(f"{name} {value}" for name, value in tiling._asdict().items())


class Shape(NamedTuple):
    """A product of M x K by K x N, so many times over."""

    M: int
    N: int
    K: int
    batches: int = 1

    @classmethod
    def of(cls, left, right, C) -> "Shape":
        """That of C = left @ right.T."""
        *batch, M, N = C.shape
        return cls(M, N, left.shape[-1], *batch)

    def __str__(self):
        return f"{self.M}x{self.N}x{self.K}" + (f" times {self.batches}" if self.batches > 1 else "")


# How fast a step runs when it has work for the whole GPU, in TFLOP/s on an H100 (4096 x 4096 x 4096): only the ratios
# count. Of the tensor ladder these are the steps for GPUs on which the library's kernel does not run.
RATES = {
    "fp32": {
        "tiled": 8,
        "register_column": 17,
        "register_tile": 31,
        "vectorised": 35,
        "swizzle": 35,
        "double_buffering": 36,
        "warp_tiles": 37,
        "tuned": 46,
    },
    "tensor": {"mma": 69, "ldmatrix": 260, "pipelined": 353},
}
RESIDENT = {"tiled": 6}  # blocks that an SM needs for that, where one is not enough; fitted to measured times
READ_GB_S = 2600  # from memory, by a kernel that has little else to do
LAUNCH_US = 3
TILED = CAPABILITIES["wgmma"]  # where the library's kernel runs
SPLITS = (2, 4, 8, 16, 32, 64)
LEAST_PART = 32  # of k
FEW = 4  # rows or columns of a result that are computed one by one


def candidates(precision: Precision, shape: Shape, capability: tuple[int, int] | None = None) -> list[Candidate]:
    """What computes such a product on a GPU of a compute capability, or on this one, by the time it may take.

    Raises
    ------
    RuntimeError
        The GPU is too old for this precision.
    """
    device = cuda.get_current_device()
    capability, sms = capability or tuple(device.compute_capability), device.MULTIPROCESSOR_COUNT
    if precision.operands == np.float32 and 1 in (shape.M, shape.N) and shape.batches == 1:  # there is nothing better
        return [Candidate("gemv")]
    if precision.ladder == "tensor" and not lacks(capability, TILED):
        row_bytes = in_pieces(shape.K, precision.operands) * precision.operands.itemsize
        work = Work(shape.M, shape.N, row_bytes, shape.batches)
        return [Candidate("general", tiling) for tiling in tilings(work, sms)]
    rates = RATES[precision.ladder]
    taken = [
        step for step in ladder("gemm", precision.ladder) if step.slug in rates and _runs(step, precision, capability)
    ]
    if not taken:
        raise RuntimeError(
            f"no kernel multiplies {precision.name} on a GPU of compute capability {'.'.join(map(str, capability))}: "
            "it takes a newer one; multiply float32 here"
        )
    ways = {Candidate(step.slug): _time_us(step, 1, shape, sms) for step in taken}
    if precision.name == "float32":
        of_large_tiles = [step for step in taken if step.slug not in RESIDENT]
        ways |= _in_parts(of_large_tiles, shape, sms, ways)
        if min(shape.M, shape.N) <= FEW:
            ways[Candidate("gemv")] = _time_us_of_gemv(shape)
    return sorted(ways, key=ways.get)


def _runs(step: Step, precision: Precision, capability: tuple[int, int]) -> bool:
    """Whether the step takes the precision, and a GPU of this capability has all of its instructions."""
    if precision.name == "tf32":  # none but the library's kernel takes it
        return False
    needs = (CAPABILITIES.get(name, CAPABILITIES.get((name, precision.format))) for name in _called(step.kernel))
    return not any(lacks(capability, needed) for needed in needs if needed)


def _called(kernel) -> set[str]:
    """The names of the functions that a kernel calls, and of what the device functions among them call."""
    function = kernel.py_func
    helpers = [value for value in names_of(function).values() if hasattr(value, "py_func") and value is not kernel]
    return set(function.__code__.co_names).union(*map(_called, helpers))


def _in_parts(steps: list[Step], shape: Shape, sms: int, whole: dict[Candidate, float]) -> dict[Candidate, float]:
    """Each step with the best number of parts of k, and the microseconds that may take, if fewer than without parts."""
    if shape.batches > 1:
        return {}
    found = {}
    for step in steps:
        times = {splits: _time_us(step, splits, shape, sms) for splits in SPLITS if splits * LEAST_PART <= shape.K}
        if times and min(times.values()) < whole[Candidate(step.slug)]:
            splits = min(times, key=times.get)
            found[Candidate(step.slug, splits=splits)] = times[splits]
    return found


def _time_us(step: Step, splits: int, shape: Shape, sms: int) -> float:
    """About how long a step takes on a GPU like an H100: whole rounds of tiles, and parts that go through memory."""
    M, N, K, batches = shape
    rows, cols = (step.module.BM, step.module.BN) if hasattr(step.module, "BM") else (step.module.TILE,) * 2
    tiles = -(-M // rows) * -(-N // cols) * batches * splits
    at_once = RESIDENT.get(step.slug, 1)
    in_turn = -(-tiles // (sms * at_once)) * at_once
    multiplying = in_turn * sms * 2 * rows * cols * -(-K // splits) / (RATES[step.ladder.name][step.slug] * 1e6)
    if splits == 1:
        return LAUNCH_US + multiplying
    moved_bytes = 4 * (2 * M * K + (2 * splits + 1) * M * N)  # a copy of the left operand, and the parts
    return 3 * LAUNCH_US + multiplying + moved_bytes / (READ_GB_S * 1e3)


def _time_us_of_gemv(shape: Shape) -> float:
    """About as long as the other operand takes to be read, once for each row or column of the result."""
    M, N, K, batches = shape
    return batches * min(M, N) * (LAUNCH_US + 4 * max(M, N) * K / (READ_GB_S * 1e3))
