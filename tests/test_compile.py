"""Every kernel of the ladders assembles offline for T4, A100 and H100, without spills, for blocks that fit an SM."""

import re

import numpy as np
import pytest
from argument_types import numba_type
from assembler import assembled, ptx_for_the_oldest, reports
from launches import bounds_of, drawn, launches_of, stated_launches, threads_of, types_of
from sampling import WHOLE, sampled

from labkit import gemm, ladder
from labkit.arrays.workspace import Workspace
from labkit.formats import BF16, FP16, FP32
from labkit.gemm.interface import combine
from labkit.gemm.interface.planes import batched_kernel
from labkit.layouts.elements import UINT_BY_BYTES
from labkit.layouts.interface import runs, strided
from labkit.machine.occupancy import occupancy
from labkit.parts.vector_widths import specialise_alignment
from labkit.simulator import host
from labkit.simulator.errors import LaunchError

OLD_AND_NEW = ((7, 5), (8, 0), (8, 9), (9, 0, "a"))
NO_SPILLS = "0 bytes spill stores, 0 bytes spill loads"
ALWAYS_FIT = 256  # threads of a block, however many registers they take: no thread has more than 255
MOST_THREADS = 1024  # of any block
SPILLS = {  # bytes that threads may spill whose bounds leave them few registers, for many values or for single ones
    "attention/forward/s02_kv_outer": 292,
    "attention/forward/s05_pipelined": 36,
    "conv/depthwise/s02_strips": 4,
    "conv/depthwise/s03_backward_data": 20,
    "conv/depthwise/s04_backward_filter": 24,
    "norm/batch/s09_in_registers": 168,
    "norm/channels_last/s02_one_read": 280,
    "norm/channels_last/s03_in_registers": 116,
    "norm/channels_last/s04_first_kept": 4,
    "norm/residual/s03_one_read": 8,
    "norm/residual_backward/s02_split": 28,
    "norm/residual_backward/s03_one_read": 4,
    "norm/rows/s06_clusters": 48,
    "norm/rows/s05_unaligned": 24,
    "norm/rows_backward/s03_sums_first": 16,
    "norm/rows_backward/s05_warps": 88,
    "softmax/backward/s06_clusters": 8,
}
# on 9.0 `mma` converts 8-bit floats to float16
SPILLS_OF_FLOAT8 = {"gemm/tensor/s03_pipelined": 200, "gemm/tensor/s04_copy_engine": 200}
STEPS = [step for each in ladder.every_ladder() if each.operation != "loops" for step in each]
SOME = sampled(STEPS, 6)

pytestmark = [pytest.mark.needs("numba-cuda", "toolkit"), pytest.mark.long]


def matrices(n):
    from numba import types

    return (types.Array(types.float32, 2, "C"),) * n


def chosen(step):
    """The launches of a step to compile: of each kernel in each format that with the largest block.

    Of a kernel whose blocks may not fit an SM, since nothing bounds its registers, it is all copies, or those for
    LARGEST. Kernels with bounds, and those of other operations, are left out for most steps, but in `make test-long`,
    which compiles all copies of all kernels.
    """
    found = {}
    for problem, format, launch in stated_launches(step):
        is_free = bounds_of(launch) is None and _is_own(launch, step)
        if is_free or step in SOME:
            keys = [(launch.kernel.py_func.__code__, format, is_free)]
            may_not_fit = is_free and threads_of(launch) > ALWAYS_FIT
            if WHOLE or (may_not_fit and problem in (step.largest or [problem])):
                keys.append((launch.kernel, types_of(launch)))
            for key in keys:
                if key not in found or threads_of(launch) >= threads_of(found[key][-1]):
                    found[key] = problem, format, launch
    return found.values()


def _is_own(launch, step):
    return launch.kernel.py_func.__module__.startswith(f"labkit.{step.ladder.operation}.")


def registers_of(report):
    return int(re.search(r"Used (\d+) registers", report)[1])


def fits_an_sm(launch, report):
    return occupancy("H100 SXM", threads_of(launch), registers=registers_of(report)).limits["registers"] > 0


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.path)
@pytest.mark.sample(8)
def test_a_kernel_assembles_without_spills_and_its_largest_block_fits_an_sm(step):
    for problem, format, launch in chosen(step):
        for target, report in reports(launch.kernel, types_of(launch), OLD_AND_NEW).items():
            name = launch.kernel.__name__
            assert fits_an_sm(launch, report), (
                f"{name} for {problem} in {format}: an SM has no {registers_of(report)} registers for each of "
                f"{threads_of(launch)} threads: bound them by launch_bounds, or make smaller blocks"
            )
            spilled = int(re.search(r"(\d+) bytes spill stores", report)[1])
            most = SPILLS.get(step.path, 0)
            if format.arithmetic == "float8 tensor" and target == OLD_AND_NEW[-1]:
                most = SPILLS_OF_FLOAT8.get(step.path, 0)
            assert spilled <= most, f"{name} for {problem} in {format} on {target} spills {spilled} bytes"


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.path)
@pytest.mark.sample(30)
def test_the_largest_blocks_of_a_step_are_stated(step):
    """Random problems make none that is larger, nor one that is larger than the bounds of its kernel."""
    for problem in step.largest:
        assert [*launches_of(step, [problem])], f"{step} does not take {problem}, which it states as LARGEST"
    most = {}
    for _, _, launch in stated_launches(step):
        name = launch.kernel.__name__
        most[name] = max(most.get(name, 0), threads_of(launch))
    for problem, format, launch in launches_of(step, drawn(step, 3000 if WHOLE else 20)):
        name, threads = launch.kernel.__name__, threads_of(launch)
        assert threads <= (bounds_of(launch) or MOST_THREADS), f"{problem} in {format}"
        if _is_own(launch, step):
            assert threads <= most.get(name, 0), f"{problem} makes blocks of {threads} threads: state it as LARGEST"


def test_a_step_says_which_gpu_it_needs():
    from labkit.cuda.compiling import ptx_text

    with pytest.raises(LaunchError, match=r"needs a GPU of compute capability 8\.0, "):
        ptx_text(gemm.step("fp32", "tuned").kernel, matrices(3), (7, 5))


@pytest.mark.parametrize("step", [step for each in ladder.ladders("blas") for step in each], ids=lambda s: s.slug)
def test_a_kernel_of_blas_loads_vectors_or_single_elements(step, tmp_path):
    (launch,) = step.launches(*step.examples[-1].operands(), workspace=Workspace(memory=host))
    types = types_of(launch)
    for kernel, in_vectors in ((step.kernel, True), (specialise_alignment(step.kernel, aligned=False), False)):
        code, (target, *_) = ptx_for_the_oldest(kernel, types, OLD_AND_NEW)
        report, _ = assembled(code, target, tmp_path)
        assert NO_SPILLS in report
        assert registers_of(report) <= 72  # else too few loads are in flight
        assert ("ld.global.v4" in code) == in_vectors


def of_the_interface():
    """The kernels around a product, and those of layouts, by name, and the types of their arguments."""
    from numba import types

    for itemsize, bits in UINT_BY_BYTES.items():
        arrays = tuple(types.Array(numba_type(bits), 4, layout) for layout in "AC")
        for kernel in (strided.copy_tiles, strided.transpose_tiles):
            yield f"{kernel.__name__} {itemsize}", strided.specialise_itemsize(kernel, itemsize), arrays
        yield (
            f"number {itemsize}",
            strided.specialise_itemsize(strided.copy_elements, itemsize),
            (*arrays, types.uint32),
        )
    for width, dtype in runs.WIDTHS.items():
        arrays = (types.Array(numba_type(dtype), 1, "C"),) * 2
        tuples = (types.UniTuple(kind, 4) for kind in (types.uint32, types.int64, types.int64))
        yield f"copy_vectors {width}", runs.copy_vectors, (*arrays, types.uint32, *tuples)
    for format, dtype in ((FP32, np.float32), (BF16, np.uint16), (FP16, np.uint16)):
        arrays = types.Array(numba_type(dtype), 4, "C"), *(types.Array(numba_type(dtype), 3, "A"),) * 2
        yield f"combine {format}", combine.combine_kernel(format), (*arrays, types.float32, types.float32)


@pytest.mark.parametrize("step", gemm.ladder("fp32"), ids=lambda s: s.slug)
@pytest.mark.sample(4)
def test_a_step_for_a_batch_assembles_without_spills_and_fits_an_sm(step, tmp_path):
    from numba import types

    (launch,) = step.launches(*step.examples[-1].operands())
    code, targets = ptx_for_the_oldest(batched_kernel(step.kernel), (types.Array(types.float32, 3, "C"),) * 3)
    for target in targets:
        report, _ = assembled(code, target, tmp_path)
        assert NO_SPILLS in report and fits_an_sm(launch, report)


@pytest.mark.parametrize("name", [name for name, *_ in of_the_interface()])
@pytest.mark.sample(8)
def test_a_kernel_around_a_product_assembles_without_spills(name, tmp_path):
    kernel, argument_types = next(found for known, *found in of_the_interface() if known == name)
    code, targets = ptx_for_the_oldest(kernel, argument_types)
    for target in targets:
        report, _ = assembled(code, target, tmp_path)
        assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in report
        assert registers_of(report) <= 72  # else too few loads are in flight


def of_layouts():
    """The kernels that move images, by name, and the types of their arguments."""
    names = "copy turn number copy_vectors".split()
    yield from ((name, kernel, kinds) for name, kernel, kinds in of_the_interface() if name.split()[0] in names)
    for step in (step for each in ladder.ladders("layouts") for step in each):
        for _, format, launch in launches_of(step, step.examples[-1:]):
            yield f"{step.path} {format} {launch.kernel.__name__}", launch.kernel, types_of(launch)


@pytest.mark.parametrize("name", [name for name, *_ in of_layouts()])
@pytest.mark.sample(14)
def test_places_of_elements_are_found_without_float64_and_without_division_in_64_bits(name):
    """numba compares a whole number without a sign and one with it as float64, and divides sums in 64 bits."""
    code, _ = ptx_for_the_oldest(*next(found for known, *found in of_layouts() if known == name))
    assert ".f64" not in code and not re.search(r"\b(div|rem)\.[us]64", code)


def test_the_report_shows_a_spill(tmp_path):
    from numba import cuda, types

    from labkit.cuda.compiling import ptx_text

    def spilling(x, out):
        kept = cuda.local.array(64, types.float32)
        for i in range(64):
            kept[i] = x[i, 0]
        for i in range(64):
            out[i, 0] = kept[int(x[i, 1]) % 64]

    report, _ = assembled(ptx_text(spilling, matrices(2), (8, 0)), (8, 0), tmp_path)
    assert not re.search(r"\b0 bytes stack frame", report)


@pytest.mark.parametrize(
    "loop", ["range(n)", "range(2, n)", "range(0, n, 3)", "range(np.int32(n))", "range(np.uint32(n))"]
)
def test_a_loop_over_range_compiles_as_a_loop_of_c(loop, tmp_path):
    """With numba's own `range` the body of this loop holds over 60 instructions."""
    from labkit.cuda import compiling

    names = {"cuda": compiling.cuda, "np": np}
    exec(SUM.format(loop=loop), names)
    ptx = compiling.ptx_text(names["total"], matrices(2), (8, 0))
    blocks = re.split(r"\n(?=\$L__)", ptx)
    body = max(blocks, key=lambda block: block.count("ld.global"))
    assert body.count("ld.global") == 4
    assert body.count(";\n") <= 25, body


SUM = """
def total(x, out):
    n = x.shape[0]
    s = np.float32(0)
    for k in {loop}:
        s += x[k, 0]
    out[0, 0] = s
"""
