"""Where the book's kernels stand under a roofline: each run once, small, in the simulator, and what was recorded."""

from collections import Counter

from labkit import results
from labkit.book import surroundings
from labkit.checking.source import python_function
from labkit.formats import BF16, FP32, Format, format_named
from labkit.ladder import Ladder, Step, every_ladder, ladder, ladders
from labkit.machine.gpus import GPUS, NAMES_OF_DRIVER
from labkit.ptx.capabilities import CAPABILITIES, is_missing
from labkit.views import Standing


def standings() -> dict[str, Standing]:
    """Every kernel of the book by its name, and the vendor's library beside them.

    Where two ladders have steps of one name, the ladder stands before it: "conv/direct/naive".
    """
    found = [(each, name, standing) for each in every_ladder() for name, standing in of(each).items()]
    count = Counter(name for _, name, _ in found)
    return {name if count[name] == 1 else f"{each.path}/{name}": one for each, name, one in found} | libraries()


def of(steps: Ladder, slugs: tuple[str, ...] = ()) -> dict[str, Standing]:
    """The steps of a ladder, in its first format: those of these slugs, or all; loops for the CPU are left out."""
    chosen = (step for step in steps if not slugs or step.slug in slugs)
    found = {step.slug: _standing(step, step.formats[0]) for step in chosen}
    return {slug: standing for slug, standing in found.items() if standing is not None}


def blas() -> dict[str, Standing]:
    """BLAS level 1 and 2."""
    return {name: standing for each in ladders("blas") for name, standing in of(each).items()}


def gemm_fp32(slugs: tuple[str, ...] = ()) -> dict[str, Standing]:
    """Steps of the fp32 ladder: those of these slugs, or all."""
    return of(ladder("gemm", "fp32"), slugs)


def libraries() -> dict[str, Standing]:
    """cuBLAS, as it was recorded beside the steps of either ladder."""
    found = {}
    for name, rival, format in (("fp32", "cuBLAS fp32", FP32), ("tensor", "cuBLAS", BF16)):
        beside = ladder("gemm", name)
        large = beside[-1].compared
        rows = _rows(beside.record, rival=rival, problem=str(large), dtype=format.name)
        speeds = {machine: large.flops / row["rival_time_ms"] / 1e9 for machine, row in rows}
        if speeds:
            place = _arithmetic(format), large.flops / large.least_bytes(format)
            found[f"cuBLAS {format}"] = Standing(*place, speeds)
    return found


def batches(dtype: str) -> dict[str, Standing]:
    """cuBLAS with more and more inputs at a time, as it was recorded: "batch 1", "batch 4", ..."""
    found = {}
    for machine, row in _rows("batch", dtype=dtype):
        name = f"batch {row['batch']}"
        speeds = found[name].measured_tflops if name in found else {}
        found[name] = Standing(_arithmetic(format_named(dtype)), _intensity(row), {**speeds, machine: row["tflops"]})
    return found


def _standing(step: Step, format: Format) -> Standing | None:
    """A step in the simulator, and as fast as it was recorded with its large problem, at that one's intensity."""
    small, large = step.standing, step.compared
    if not small.flops:
        return None
    run = step.simulate(*small.operands(format), format=format)
    if not run.traces:
        return None
    rows = _rows(step.ladder.record, step=step.slug, problem=str(large), dtype=format.name)
    return Standing(
        _arithmetic(format),
        large.flops / large.least_bytes(format),
        {machine: row["tflops"] for machine, row in rows},
        run.traces,
        small.flops,
        _able(step, format),
    )


def _arithmetic(format: Format) -> str:
    """The units that multiply a format in which kernels compute, and so all formats here."""
    assert format.arithmetic is not None, f"nothing multiplies {format}"
    return format.arithmetic


def _able(step, format):
    """The GPUs that have a step's instructions, and the shared memory that a block of it asks for."""
    used = surroundings.instructions(python_function(step.kernel))
    needed = [CAPABILITIES[key] for name in used for key in (name, (name, format.number)) if key in CAPABILITIES]
    return tuple(
        name
        for name, gpu in GPUS.items()
        if step.shared_bytes <= gpu.shared_bytes_per_block
        and not any(is_missing(gpu.compute_capability, capability) for capability in needed)
    )


def _rows(operation, **fields):
    """Recorded rows of an operation with these values, each with the name of its GPU in `labkit.machine.gpus`."""
    for machine, what in results.recorded():
        if what == operation:
            found = results.load(operation, machine)
            for row in found.select(**fields):
                yield NAMES_OF_DRIVER.get(found.header.get("gpu", ""), machine), row


def _intensity(row):
    """FLOPs a byte, if each byte moved once: that is how `gb_s` is computed."""
    return 1000 * row["tflops"] / row["gb_s"]
