"""Candidates for computing a product, the most promising first: a kernel and how it divides the work."""

from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

from labkit import cuda, results
from labkit.arrays.addresses import VECTOR_BYTES, has_vector_rows, round_up_to_vectors
from labkit.arrays.views import transpose
from labkit.calls import tuning
from labkit.calls.choice import fastest_first, recorded_ms, sort_by_estimates
from labkit.formats import FORMATS, FP32, TF32, Format, format_named
from labkit.gemm import small
from labkit.gemm.bandwidth import CYCLES_PER_US, dram_bytes_per_cycle
from labkit.gemm.interface.arrange import straddles_sectors
from labkit.gemm.library.kernel import general
from labkit.gemm.library.launches import FORMATS as LIBRARY_FORMATS
from labkit.gemm.library.tilings import Tiling, Work, estimate_with_copies, tilings
from labkit.gemm.parts import add_parts_cycles
from labkit.gemm.simt import tilings as simt
from labkit.gemm.simt.kernel import simt as simt_kernel
from labkit.ladder import Step, ladder, ladders
from labkit.ptx.capabilities import CAPABILITIES, can_run, is_missing


class Candidate(NamedTuple):
    """Kernel that can compute a product.

    step: slug of a ladder's step, "general" for the library's kernel, "simt" for that of CUDA cores, "small" for that
    of small products, or "gemv".
    tiling: of "general" and "simt". parts: of k that "general" multiplies as a batch, and a last launch adds.
    """

    step: str
    tiling: Tiling | simt.Tiling | None = None
    parts: int = 1

    def __str__(self):
        if self.tiling is None:
            return self.step
        options = {**self.tiling._asdict(), **({"parts": self.parts} if self.parts > 1 else {})}
        return f"{self.step} ({', '.join(f'{name} {value}' for name, value in options.items())})"

    def as_data(self) -> dict:
        """Return the candidate as JSON data."""
        return {"step": self.step, "tiling": self.tiling and self.tiling._asdict(), "parts": self.parts}

    @property
    def kernels(self) -> list:
        """Kernels that compute the product, without copies of operands."""
        if self.step == "general":
            return [general]
        if self.step == "simt":
            return [simt_kernel]
        if self.step == "small":
            return [small.small]
        if self.step == "gemv":
            return [step.kernel for step in ladder("blas", "level2")]
        return [step.kernel for step in _all_steps() if step.slug == self.step]


def _all_steps() -> list[Step]:
    return [step for gemm_ladder in ladders("gemm") for step in gemm_ladder]


class Shape(NamedTuple):
    """Sizes of a batch of products of M x K by K x N.

    straddling: of each operand, whether its lines in memory begin at odd multiples of 16 bytes.
    """

    M: int
    N: int
    K: int
    batches: int = 1
    straddling: tuple[bool, bool] = (False, False)

    @classmethod
    def of(cls, left, right, C) -> "Shape":
        """Return the shape of C = left @ right.T."""
        *batch, M, N = C.shape
        return cls(M, N, left.shape[-1], prod(batch), (straddles_sectors(left), straddles_sectors(right)))

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        return self[:4]

    def __str__(self):
        return f"{self.M}x{self.N}x{self.K}" + (f" times {self.batches}" if self.batches > 1 else "")


REFERENCE_PROBLEM = "4096x4096x4096"  # M x N x K whose recorded speeds predict a step's time; only ratios matter
SATURATING_THREADS = 1536  # per SM, for full speed where a thread computes one element; fitted to measured times
DRAM_GB_S = 2600  # of a kernel that only reads
LAUNCH_US = 3  # per launch, besides its kernel
LIBRARY_CAPABILITY = CAPABILITIES["wgmma"]
PARTS = 8, 16, 24, 32, 48, 64, 96, 128  # of k to try
MIN_PART_BYTES = 512  # of a row
MAX_SMALL_SIDE = 128  # rows and columns of a result whose warps load their operands themselves
MAX_GEMV_SIDE = 4  # rows or columns of a result that gemv computes one by one


def choose_candidate(format: Format, left, right, C) -> Candidate:
    """Return the candidate for C = left @ right.T that `tune` found fastest on this GPU, else the most promising."""
    shape = Shape.of(left, right, C)
    return fastest_first("gemm", tuning_key(format, shape, left, right, C), candidates(format, shape))[0]


def tuning_key(format: Format, shape: Shape, left, right, C) -> str:
    """Return the key of tuned times: format, shape, and the axis along which each array has whole 16-byte pieces.

    Where these begin at odd multiples of 16 bytes, each second one of 128 bytes lies across more sectors.
    """
    layouts = _describe_layout(left), _describe_layout(right), _describe_layout(C, "by rows")
    return "{} {}, left {}, right {}, result {}".format(format, shape, *layouts)


def _describe_layout(X, row_major="along k") -> str:
    *_, rows, cols = X.shape
    straddling = ", across sectors" if row_major == "along k" and straddles_sectors(X) else ""
    if has_vector_rows(X, (rows, cols)):
        return row_major + straddling
    is_column_major = row_major == "along k" and has_vector_rows(transpose(X), (cols, rows))
    return "across k" + straddling if is_column_major else "anyhow"


@cache
def supported_formats() -> tuple[Format, ...]:
    """Return the formats that some ladder's step multiplies."""
    supported = {format for step in _all_steps() for format in step.formats}
    return tuple(format for format in FORMATS.values() if format in supported)


def find_format(format: str | Format) -> Format:
    """Return a format by its name; raise ValueError if it is unknown or not supported."""
    format = format_named(format)
    if format not in supported_formats():
        *others, last = map(str, supported_formats())
        raise ValueError(f"{format} is not multiplied here: give {', '.join(others)} or {last}")
    return format


def candidates(format: Format, shape: Shape, capability: tuple[int, int] | None = None) -> list[Candidate]:
    """Return the candidates of `ranked`; in the simulator those that it runs slowly come last."""
    found = ranked(format, shape, capability)
    return found if cuda.on_gpu() else sorted(found, key=lambda candidate: candidate.step == "simt")


def ranked(format: Format, shape: Shape, capability: tuple[int, int] | None = None) -> list[Candidate]:
    """Return the candidates for a product on a GPU of a compute capability, or this one, by recorded or estimated time.

    Raises ValueError if no kernel multiplies the format, RuntimeError if the GPU is too old for it.
    """
    find_format(format)
    device = cuda.get_current_device()
    capability = capability or tuple(device.compute_capability)
    sms, shared_bytes = device.MULTIPROCESSOR_COUNT, device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    return _candidates(format, shape, capability, sms, shared_bytes, tuning.gpu_name())


@lru_cache(1024)
def _candidates(format, shape, capability, sms, shared_bytes, gpu):
    if format.dtype == FP32.dtype and 1 in (shape.M, shape.N) and shape.batches == 1:
        return [Candidate("gemv")]
    if format in LIBRARY_FORMATS and not is_missing(capability, LIBRARY_CAPABILITY):
        return _library_candidates(format, shape, sms)
    steps = [step for step in _steps(format) if can_run(step.kernel, format.number, capability)]
    if not steps:
        raise RuntimeError(
            f"no kernel multiplies {format} on a GPU of compute capability {'.'.join(map(str, capability))}: "
            "it takes a newer one; multiply float32 here"
        )
    recorded_us = {Candidate(step.slug): _recorded_us(step, format, shape) for step in steps}
    modelled_us = {Candidate(step.slug): _time_us(step, shape, sms) for step in steps}
    if format == FP32:
        if can_run(simt_kernel, format.number, capability):
            found = simt.tilings(simt.Work(*shape.sizes), sms, dram_bytes_per_cycle(), shared_bytes)
            modelled_us |= {Candidate("simt", tiling): cycles / CYCLES_PER_US for tiling, cycles in found}
        if min(shape.M, shape.N) <= MAX_GEMV_SIDE:
            modelled_us[Candidate("gemv")] = _gemv_time_us(shape)
    return sort_by_estimates(list(modelled_us), recorded_us.get, modelled_us.get)


def _library_candidates(format, shape, sms) -> list[Candidate]:
    """Return candidates of the library's kernel, also with k divided into parts."""
    row_bytes = round_up_to_vectors(shape.K, format.dtype) * format.itemsize
    work, dram = Work(shape.M, shape.N, row_bytes, shape.batches, shape.straddling), dram_bytes_per_cycle()
    best_tilings = tilings(work, sms, dram=dram)
    found = {Candidate("general", tiling): estimate_with_copies(tiling, work, sms, dram) for tiling in best_tilings}
    if format in small.FORMATS and max(shape.M, shape.N) <= MAX_SMALL_SIDE:
        found[Candidate("small")] = small.estimate(*shape.sizes, sms, dram)
    if shape.batches == 1:
        for parts in _even_parts(shape.K * format.itemsize):
            in_parts = Work(shape.M, shape.N, row_bytes // parts, parts, shape.straddling)
            tiling = next(tiling for tiling in tilings(in_parts, sms, dram=dram) if tiling.splits == 1)
            cycles = estimate_with_copies(tiling, in_parts, sms, dram) + add_parts_cycles(parts, shape.M * shape.N)
            found[Candidate("general", tiling, parts)] = cycles
    return sort_by_estimates(list(found), found.get)


def _even_parts(row_bytes: int) -> list[int]:
    """Return numbers of equal parts of whole 16-byte vectors of a row, at least MIN_PART_BYTES each."""
    return [parts for parts in PARTS if row_bytes % (parts * VECTOR_BYTES) == 0 and row_bytes >= parts * MIN_PART_BYTES]


@lru_cache(16)  # formats
def _steps(format: Format) -> list[Step]:
    """Return the steps that multiply a format; only the library multiplies TF32."""
    return [step for step in _all_steps() if format in step.formats and format != TF32]


def find_step(candidate: Candidate, format: Format) -> Step:
    """Return the step of a candidate for a format."""
    return next(step for step in _steps(format) if step.slug == candidate.step)


# --- estimated times -----------------------------------------------------------------------------


def _recorded_us(step: Step, format: Format, shape: Shape) -> float | None:
    """Return the recorded time of a step for this product, if there is one."""
    *sizes, batches = shape.sizes
    time_ms = recorded_ms(step, step.problem(*sizes), format) if batches == 1 else None
    return None if time_ms is None else time_ms * 1e3


def _time_us(step: Step, shape: Shape, sms: int) -> float:
    """Estimate a step's time: whole waves of blocks."""
    M, N, K, batches = shape.sizes
    blocks = _count(step.geometry(M, N)[0]) * batches
    wave_blocks = _saturating_blocks(step)  # of an SM
    blocks_per_sm = -(-blocks // (sms * wave_blocks)) * wave_blocks
    return LAUNCH_US + blocks_per_sm * sms * 2 * _outputs_per_block(step) * K / (_tflops(step) * 1e6)


def _outputs_per_block(step: Step) -> int:
    """Return the elements of C that a block computes."""
    return 4096 * 4096 // _count(step.geometry(4096, 4096)[0])


def _saturating_blocks(step: Step) -> int:
    """Return the blocks that an SM needs for full speed: one, or enough to fill it where a thread has one element."""
    threads = _count(step.geometry(4096, 4096)[1])
    return max(1, SATURATING_THREADS // threads) if _outputs_per_block(step) <= threads else 1


def _count(extent: int | tuple[int, ...]) -> int:
    return prod(extent) if isinstance(extent, tuple) else extent


def _tflops(step: Step) -> float:
    """Return the step's recorded TFLOP/s on the most similar GPU, else those of the step before it."""
    return _recorded_tflops(step, tuning.gpu_name(), tuple(cuda.get_current_device().compute_capability))


@lru_cache(256)  # steps
def _recorded_tflops(step, gpu, capability):
    for machine in results.nearest(step.ladder.record, gpu, capability):
        for row in results.load(step.ladder.record, machine).select(step=step.slug, problem=REFERENCE_PROBLEM):
            if row.get("tflops"):
                return row["tflops"]
    earlier_steps = step.ladder[: step.ladder.steps.index(step)]
    return _recorded_tflops(earlier_steps[-1], gpu, capability) if earlier_steps else 1.0


def _gemv_time_us(shape: Shape) -> float:
    """Estimate gemv's time: the other operand is read once per row or column of the result."""
    M, N, K, batches = shape.sizes
    return batches * min(M, N) * (LAUNCH_US + 4 * max(M, N) * K / (DRAM_GB_S * 1e3))
