"""The ways in which a product can be computed, the most promising first: with which kernel, cut up how."""

from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

from labkit import cuda, results
from labkit.arrays.addresses import has_vector_rows, round_up_to_vectors
from labkit.arrays.views import transpose
from labkit.calls import tuning
from labkit.calls.choice import fastest_first, recorded_ms, sort_by_estimates
from labkit.formats import FORMATS, FP32, TF32, Format, format_named
from labkit.gemm.library.kernel import general
from labkit.gemm.library.tilings import Tiling, Work, tilings
from labkit.ladder import Step, ladder, ladders
from labkit.ptx.capabilities import CAPABILITIES, lacks, runs


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

    @property
    def kernels(self) -> list:
        """What computes the product, without copies of operands."""
        if self.tiling is not None:
            return [general]
        if self.step == "gemv":
            return [step.kernel for step in ladder("blas", "level2")]
        return [step.kernel for one in ladders("gemm") for step in one if step.slug == self.step]


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


SPEED_OF = "4096x4096x4096"  # the problem whose recorded speed a step is predicted with; only the ratios count
THREADS = 1536  # that an SM needs for that where a thread computes one element; fitted to measured times
READ_GB_S = 2600  # from memory, by a kernel that has little else to do
LAUNCH_US = 3
TILED = CAPABILITIES["wgmma"]  # where the library's kernel runs
SPLITS = (2, 4, 8, 16, 32, 64)
LEAST_PART = 32  # of k
FEW = 4  # rows or columns of a result that are computed one by one


def choice(format: Format, left, right, C) -> Candidate:
    """The candidate for C = left @ right.T: the one that `tune` found fastest on this GPU, else the most promising."""
    shape = Shape.of(left, right, C)
    return fastest_first("gemm", question(format, shape, left, right, C), candidates(format, shape))[0]


def question(format: Format, shape: Shape, left, right, C) -> str:
    """The question for `labkit.calls.tuning` in words: format, shape, and along what the arrays lie in whole pieces."""
    return f"{format} {shape}, left {_lies(left)}, right {_lies(right)}, result {_lies(C, 'by rows')}"


def _lies(X, well="along k") -> str:
    *_, rows, cols = X.shape
    if has_vector_rows(X, (rows, cols)):
        return well
    return "across k" if well == "along k" and has_vector_rows(transpose(X), (cols, rows)) else "anyhow"


@cache
def multiplied() -> tuple[Format, ...]:
    """Return the formats that are multiplied here: those of the ladders' steps."""
    known = {format for one in ladders("gemm") for step in one for format in step.formats}
    return tuple(format for format in FORMATS.values() if format in known)


def multiplied_format(format: str | Format) -> Format:
    """Return a format by its name; raise ValueError if there is none, or it is not multiplied here."""
    format = format_named(format)
    if format not in multiplied():
        *others, last = map(str, multiplied())
        raise ValueError(f"{format} is not multiplied here: give {', '.join(others)} or {last}")
    return format


def candidates(format: Format, shape: Shape, capability: tuple[int, int] | None = None) -> list[Candidate]:
    """What computes such a product on a GPU of a compute capability, or on this one, by the time it took or may take.

    Raises
    ------
    ValueError
        The format is not multiplied here.
    RuntimeError
        The GPU is too old for this format.
    """
    multiplied_format(format)
    device = cuda.get_current_device()
    capability = capability or tuple(device.compute_capability)
    return _candidates(format, shape, capability, device.MULTIPROCESSOR_COUNT, tuning.gpu_name())


@lru_cache(1024)  # products
def _candidates(format, shape, capability, sms, gpu):
    if format.dtype == FP32.dtype and 1 in (shape.M, shape.N) and shape.batches == 1:  # there is nothing better
        return [Candidate("gemv")]
    if format != FP32 and not lacks(capability, TILED):
        row_bytes = round_up_to_vectors(shape.K, format.dtype) * format.itemsize
        work = Work(shape.M, shape.N, row_bytes, shape.batches)
        return [Candidate("general", tiling) for tiling in tilings(work, sms)]
    taken = [step for step in _steps(format) if runs(step.kernel, format.number, capability)]
    if not taken:
        raise RuntimeError(
            f"no kernel multiplies {format} on a GPU of compute capability {'.'.join(map(str, capability))}: "
            "it takes a newer one; multiply float32 here"
        )
    recorded = {Candidate(step.slug): _recorded_us(step, format, shape) for step in taken}
    modelled = {Candidate(step.slug): _time_us(step, 1, shape, sms) for step in taken}
    if format == FP32:
        modelled |= _in_parts([step for step in taken if _blocks_at_once(step) == 1], shape, sms, modelled)
        if min(shape.M, shape.N) <= FEW:
            modelled[Candidate("gemv")] = _time_us_of_gemv(shape)
    return sort_by_estimates(list(modelled), recorded.get, modelled.get)


@lru_cache(16)  # formats
def _steps(format: Format) -> list[Step]:
    """The steps that multiply a format; TF32 is the library's alone."""
    return [step for one in ladders("gemm") for step in one if format in step.formats and format != TF32]


def step_of(candidate: Candidate, format: Format) -> Step:
    """The step that a candidate for a format stands for."""
    return next(step for step in _steps(format) if step.slug == candidate.step)


# --- how long they may take ----------------------------------------------------------------------


def _recorded_us(step: Step, format: Format, shape: Shape) -> float | None:
    """How long a step took for such a product, where that was recorded."""
    *sizes, batches = shape
    time_ms = recorded_ms(step, step.problem(*sizes), format) if batches == 1 else None
    return None if time_ms is None else time_ms * 1e3


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
    """About how long a step takes: whole rounds of blocks, and parts that go through memory."""
    M, N, K, batches = shape
    blocks = _count(step.geometry(M, N)[0]) * batches * splits
    at_once = _blocks_at_once(step)
    in_turn = -(-blocks // (sms * at_once)) * at_once
    multiplying = in_turn * sms * 2 * _outputs(step) * -(-K // splits) / (_tflops(step) * 1e6)
    if splits == 1:
        return LAUNCH_US + multiplying
    moved_bytes = 4 * (2 * M * K + (2 * splits + 1) * M * N)  # a copy of the left operand, and the parts
    return 3 * LAUNCH_US + multiplying + moved_bytes / (READ_GB_S * 1e3)


def _outputs(step: Step) -> int:
    """Elements of C that a block computes."""
    return 4096 * 4096 // _count(step.geometry(4096, 4096)[0])


def _blocks_at_once(step: Step) -> int:
    """Blocks that an SM needs to run as fast as it can: one, or as many as fill it where a thread has one element."""
    threads = _count(step.geometry(4096, 4096)[1])
    return max(1, THREADS // threads) if _outputs(step) <= threads else 1


def _count(extent: int | tuple[int, ...]) -> int:
    return prod(extent) if isinstance(extent, tuple) else extent


def _tflops(step: Step) -> float:
    """What the step reached on the most similar GPU on which it was recorded; else what the one before it did."""
    return _recorded_tflops(step, tuning.gpu_name(), tuple(cuda.get_current_device().compute_capability))


@lru_cache(256)  # steps
def _recorded_tflops(step, gpu, capability):
    for machine in results.nearest(step.ladder.record, gpu, capability):
        for row in results.load(step.ladder.record, machine).select(step=step.slug, problem=SPEED_OF):
            if row.get("tflops"):
                return row["tflops"]
    before = step.ladder[: step.ladder.steps.index(step)]
    return _recorded_tflops(before[-1], gpu, capability) if before else 1.0


def _time_us_of_gemv(shape: Shape) -> float:
    """About as long as the other operand takes to be read, once for each row or column of the result."""
    M, N, K, batches = shape
    return batches * min(M, N) * (LAUNCH_US + 4 * max(M, N) * K / (READ_GB_S * 1e3))
