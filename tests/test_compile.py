"""Every kernel of the ladders assembles offline for T4, A100 and H100, without spills, for blocks that fit an SM."""

import re

import numpy as np
import pytest
from argument_types import argument_type, numba_type
from assembler import assembled, ptx_for_the_oldest
from sampling import sampled

from labkit import gemm, ladder
from labkit.arrays.workspace import Workspace
from labkit.blas import access
from labkit.formats import BF16, FP16, FP32
from labkit.gemm.interface import combine
from labkit.gemm.interface.planes import in_planes
from labkit.layouts.elements import BITS
from labkit.layouts.interface import runs, strided
from labkit.simulator import host
from labkit.simulator.errors import LaunchError

OLD_AND_NEW = [(7, 5), (8, 0), (8, 9), (9, 0, "a")]
NO_SPILLS = "0 bytes spill stores, 0 bytes spill loads"
REGISTERS = 65536  # of an SM; a thread gets them by eights

pytestmark = [pytest.mark.needs("numba-cuda", "toolkit"), pytest.mark.long]


def matrices(n):
    from numba import types

    return (types.Array(types.float32, 2, "C"),) * n


def of_the_ladders():
    """Every launch of every step in each of its formats, by name: its kernel, arguments and block."""
    for step in (step for each in ladder.every_ladder() for step in each):
        for format in step.formats:
            operands = step.examples[-1].operands(format)
            for launch in step.launches(*operands, format=format, workspace=Workspace(memory=host)):
                if launch.grid != ():
                    yield (
                        f"{step.path} {format} {launch.kernel.__name__}",
                        launch.kernel,
                        launch.arguments,
                        launch.block,
                    )


KERNELS = {name: rest for name, *rest in of_the_ladders()}


@pytest.mark.parametrize("name", sampled(KERNELS, 24))
def test_a_kernel_assembles_without_spills_and_fits_an_sm(name, tmp_path):
    kernel, arguments, block = KERNELS[name]
    code, targets = ptx_for_the_oldest(kernel, [argument_type(argument) for argument in arguments], OLD_AND_NEW)
    for target in targets:
        report, cubin = assembled(code, target, tmp_path)
        assert cubin.startswith(b"\x7fELF")
        registers = int(re.search(r"Used (\d+) registers", report)[1])
        assert -(-registers // 8) * 8 * np.prod(block) <= REGISTERS, "ask for fewer registers by launch_bounds"
        if re.search("(pipelined|copy_engine) float8", name) and target == OLD_AND_NEW[-1]:
            # on 9.0 `mma` of e4m3 converts to fp16 first, for which registers are short
            assert int(re.search(r"(\d+) bytes spill stores", report)[1]) < 200
        else:
            assert NO_SPILLS in report


def test_a_step_says_which_gpu_it_needs():
    from labkit.compiler import ptx_text

    with pytest.raises(LaunchError, match=r"needs a GPU of compute capability 8\.0, "):
        ptx_text(gemm.step("fp32", "tuned").kernel, matrices(3), (7, 5))


@pytest.mark.parametrize("step", [step for each in ladder.ladders("blas") for step in each], ids=lambda s: s.slug)
def test_a_kernel_of_blas_loads_vectors_or_single_elements(step, tmp_path):
    (launch,) = step.launches(*step.examples[-1].operands(), workspace=Workspace(memory=host))
    types = [argument_type(argument) for argument in launch.arguments]
    for kernel, in_vectors in ((step.kernel, True), (access.plain(step.kernel), False)):
        code, (target, *_) = ptx_for_the_oldest(kernel, types, OLD_AND_NEW)
        report, _ = assembled(code, target, tmp_path)
        assert NO_SPILLS in report
        assert int(re.search(r"Used (\d+) registers", report)[1]) <= 72  # else too few loads are under way
        assert ("ld.global.v4" in code) == in_vectors


def of_the_interface():
    """The kernels around a product, and those of layouts, by name, and the types of their arguments."""
    from numba import types

    for itemsize, bits in BITS.items():
        arrays = tuple(types.Array(numba_type(bits), 4, layout) for layout in "AC")
        for kernel in (strided.copy, strided.turn):
            yield f"{kernel.__name__} {itemsize}", strided.for_elements(kernel, itemsize), arrays
        yield f"number {itemsize}", strided.for_elements(strided.number, itemsize), (*arrays, types.uint32)
    for width, dtype in runs.WIDTHS.items():
        arrays = (types.Array(numba_type(dtype), 1, "C"),) * 2
        tuples = (types.UniTuple(kind, 4) for kind in (types.uint32, types.int64, types.int64))
        yield f"copy_vectors {width}", runs.copy_vectors, (*arrays, types.uint32, *tuples)
    for format, dtype in ((FP32, np.float32), (BF16, np.uint16), (FP16, np.uint16)):
        arrays = types.Array(numba_type(dtype), 4, "C"), *(types.Array(numba_type(dtype), 3, "A"),) * 2
        yield f"combine {format}", combine.for_results(format), (*arrays, types.float32, types.float32)


@pytest.mark.parametrize("step", gemm.ladder("fp32"), ids=lambda s: s.slug)
def test_a_step_for_a_batch_assembles_without_spills(step, tmp_path):
    from numba import types

    code, targets = ptx_for_the_oldest(in_planes(step.kernel), (types.Array(types.float32, 3, "C"),) * 3)
    for target in targets:
        report, _ = assembled(code, target, tmp_path)
        assert "0 bytes spill stores, 0 bytes spill loads" in report


@pytest.mark.parametrize("name", [name for name, *_ in of_the_interface()])
def test_a_kernel_around_a_product_assembles_without_spills(name, tmp_path):
    kernel, argument_types = next(found for known, *found in of_the_interface() if known == name)
    code, targets = ptx_for_the_oldest(kernel, argument_types)
    for target in targets:
        report, _ = assembled(code, target, tmp_path)
        assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in report
        assert int(re.search(r"Used (\d+) registers", report)[1]) <= 72  # else too few loads are under way


def of_layouts():
    """The kernels that move images, by name, and the types of their arguments."""
    names = "copy turn number copy_vectors".split()
    yield from ((name, kernel, kinds) for name, kernel, kinds in of_the_interface() if name.split()[0] in names)
    for name, (kernel, arguments, _) in KERNELS.items():
        if name.startswith("layouts"):
            yield name, kernel, tuple(map(argument_type, arguments))


@pytest.mark.parametrize("name", [name for name, *_ in of_layouts()])
def test_places_of_elements_are_found_without_float64_and_without_division_in_64_bits(name):
    """numba compares a whole number without a sign and one with it as float64, and divides sums in 64 bits."""
    code, _ = ptx_for_the_oldest(*next(found for known, *found in of_layouts() if known == name))
    assert ".f64" not in code and not re.search(r"\b(div|rem)\.[us]64", code)


def test_the_report_shows_a_spill(tmp_path):
    from numba import cuda, types

    from labkit.compiler import ptx_text

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
    from labkit import compiler

    names = {"cuda": compiler.cuda, "np": np}
    exec(SUM.format(loop=loop), names)
    ptx = compiler.ptx_text(names["total"], matrices(2), (8, 0))
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
