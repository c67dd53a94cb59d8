"""Roofline points of the book's kernels: a small run of each in the simulator, and its recorded speed."""

from collections import Counter

from labkit import results
from labkit.book import surroundings
from labkit.checking.source import python_function
from labkit.formats import BF16, FP32, Format, format_named
from labkit.ladder import Ladder, Step, every_ladder, ladder, ladders
from labkit.machine.gpus import GPU_BY_DRIVER_NAME, GPUS
from labkit.ptx.capabilities import CAPABILITIES, is_missing
from labkit.views import Standing


def standings() -> dict[str, Standing]:
    """Return every kernel of the book by name, and cuBLAS.

    If two ladders have steps of one name, the ladder precedes it: "conv/direct/naive".
    """
    found = [(each, name, standing) for each in every_ladder() for name, standing in of(each).items()]
    count = Counter(name for _, name, _ in found)
    return {name if count[name] == 1 else f"{each.path}/{name}": one for each, name, one in found} | libraries()


def of(steps: Ladder, slugs: tuple[str, ...] = ()) -> dict[str, Standing]:
    """Return the steps of a ladder in its first format: those of these slugs, or all; CPU loops are left out."""
    chosen = (step for step in steps if not slugs or step.slug in slugs)
    found = {step.slug: _standing(step, step.formats[0]) for step in chosen}
    return {slug: standing for slug, standing in found.items() if standing is not None}


def blas() -> dict[str, Standing]:
    """Return BLAS level 1 and 2."""
    return {name: standing for each in ladders("blas") for name, standing in of(each).items()}


def gemm_fp32(slugs: tuple[str, ...] = ()) -> dict[str, Standing]:
    """Return steps of the fp32 ladder: those of these slugs, or all."""
    return of(ladder("gemm", "fp32"), slugs)


def libraries() -> dict[str, Standing]:
    """Return cuBLAS, as recorded with the steps of either ladder."""
    found = {}
    for name, baseline, format in (("fp32", "cuBLAS fp32", FP32), ("tensor", "cuBLAS", BF16)):
        steps = ladder("gemm", name)
        large = steps[-1].compared
        rows = _rows(steps.record, baseline=baseline, problem=str(large), dtype=format.name)
        speeds = {machine: large.flops / row["baseline_time_ms"] / 1e9 for machine, row in rows}
        if speeds:
            place = _arithmetic(format), large.flops / large.min_bytes(format)
            found[f"cuBLAS {format}"] = Standing(*place, speeds)
    return found


def batches(dtype: str) -> dict[str, Standing]:
    """Return cuBLAS with growing batches, as recorded: "batch 1", "batch 4", ..."""
    found = {}
    for machine, row in _rows("batch", dtype=dtype):
        name = f"batch {row['batch']}"
        speeds = found[name].measured_tflops if name in found else {}
        intensity = 1000 * row["tflops"] / row["gb_s"]  # FLOP per byte if each byte moves once
        found[name] = Standing(_arithmetic(format_named(dtype)), intensity, {**speeds, machine: row["tflops"]})
    return found


def _standing(step: Step, format: Format) -> Standing | None:
    """Simulate a step with a small problem; intensity and recorded speed are those of its large problem."""
    small, large = step.roofline_problem, step.compared
    if not small.flops:
        return None
    run = step.simulate(*small.operands(format), format=format)
    if not run.traces:
        return None
    rows = _rows(step.ladder.record, step=step.slug, problem=str(large), dtype=format.name)
    return Standing(
        _arithmetic(format),
        large.flops / large.min_bytes(format),
        {machine: row["tflops"] for machine, row in rows},
        run.traces,
        small.flops,
        _capable_gpus(step, format),
    )


def _arithmetic(format: Format) -> str:
    """Return the name of the units that multiply a format in which kernels compute."""
    assert format.arithmetic is not None, f"nothing multiplies {format}"
    return format.arithmetic


def _capable_gpus(step, format):
    """Return the GPUs that have a step's instructions and enough shared memory for its blocks."""
    used = surroundings.instructions(python_function(step.kernel))
    needed = [CAPABILITIES[key] for name in used for key in (name, (name, format.number)) if key in CAPABILITIES]
    return tuple(
        name
        for name, gpu in GPUS.items()
        if step.shared_bytes <= gpu.shared_bytes_per_block
        and not any(is_missing(gpu.compute_capability, capability) for capability in needed)
    )


def _rows(operation, **fields):
    """Yield recorded rows of an operation with these values, each after its GPU's name in `labkit.machine.gpus`."""
    for machine, what in results.recorded():
        if what == operation:
            found = results.load(operation, machine)
            for row in found.select(**fields):
                yield GPU_BY_DRIVER_NAME.get(found.header.get("gpu", ""), machine), row
