"""Instructions of one iteration of the small kernels, which the chapter on implicit GEMM states."""

from collections import Counter

import numpy as np
import pytest

from labkit import conv, specialise
from labkit.arrays.workspace import Workspace
from labkit.bench.implicit_gemm import plain_divide
from labkit.forecast import sass

STEPS = conv.ladder("implicit_gemm")


class Numpy:
    """Memory of the host, whose arrays a compiler knows."""

    device_array = staticmethod(np.empty)


def instructions_per_iteration(slug, **changes):
    operands = conv.Forward(2, 4, 10, 10, 8, 3, 3).operands()
    launch = STEPS.step(slug).launches(*operands, workspace=Workspace(memory=Numpy))[-1]
    code = sass.compiled(specialise(launch.kernel, **changes) if changes else launch.kernel, *launch.arguments)
    start, end = max(code.loops, key=lambda loop: loop[1] - loop[0])
    return Counter(one.opcode for one in code.instructions if start <= one.address <= end)


@pytest.mark.needs("numba-cuda", "toolkit", "nvdisasm")
@pytest.mark.sample(1)
def test_divisions_take_most_of_an_iteration():
    index, offsets, magic = map(instructions_per_iteration, ("index", "offsets", "magic"))
    assert {code["FFMA"] for code in (index, offsets, magic)} == {STEPS.step("index").TILE}
    assert [code.total() for code in (index, offsets, magic)] == pytest.approx([175, 87, 99], rel=0.05)
    divided = instructions_per_iteration("magic", fast_divide=plain_divide)
    assert divided["MUFU"] == 2 and magic["MUFU"] == 0, "a division starts with the reciprocal of its divisor"
    assert (divided.total() - magic.total()) / 2 == pytest.approx(18.5, rel=0.1), "instructions more per division"
