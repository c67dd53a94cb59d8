"""float16 and bfloat16 functions: one rounding, the ordered and unordered comparisons, conversions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from labkit.simulator import numba_types
from labkit.simulator.functions import half
from labkit.simulator.lanes import apply_function
from labkit.simulator.language import FUNCTIONS

nan, inf = math.nan, math.inf


def call(name, *values):
    """Return the result of `cuda.fp16.name` or `cuda.bf16.name` for plain numbers."""
    function = FUNCTIONS[f"cuda.{name}"]
    case = function.cases[0]
    given = []
    for value, kind in zip(values, case.args):
        number = np.asarray(value).astype(numba_types.dtype_of(kind))[()]
        with np.errstate(all="ignore"):
            given.append(half.to_bfloat16(number) if kind == numba_types.bfloat16 else number)
    with np.errstate(all="ignore"):
        return apply_function(function.run, numba_types.dtype_of(case.return_type), *given).item()


@pytest.mark.parametrize("mode", ["rn", "rz", "rd", "ru"])
def test_bfloat16_is_rounded_right(mode):
    rng = np.random.default_rng(3)
    values = np.concatenate(
        [rng.normal(size=50) * 10.0 ** rng.integers(-40, 38, 50), [3.4e38, -3.4e38, 1e300, 1 + 2**-8]]
    )
    with np.errstate(all="ignore"):
        found = half.to_bfloat16(values, mode)
    bits = found.view(np.uint32)
    assert not (bits & 0xFFFF).any()
    step = np.uint32(0x10000)
    for value, result, raw in zip(values.tolist(), found, bits):
        if np.isinf(result):
            assert abs(value) > 3.38e38 and mode != "rz" and (mode == "rn" or (mode == "ru") == (result > 0))
            continue
        outer = np.uint32(raw + step).view(np.float32)
        inner = np.uint32(raw - step).view(np.float32) if raw & 0x7FFFFFFF else -outer
        below, above = sorted((float(inner), float(outer)))
        if mode == "rn":
            gap = abs(Fraction(value) - Fraction(float(result)))
            assert all(gap <= abs(Fraction(value) - Fraction(n)) for n in (below, above) if math.isfinite(n))
        elif mode == "rd" or (mode == "rz" and value > 0):
            assert float(result) <= value < above
        else:
            assert below < value <= float(result)


def test_fused_operations_round_once():
    a, c = 1 + 2**-10, -(1 + 2**-9)
    assert call("fp16.hfma", a, a, c) == 2.0**-20
    assert call("fp16.hadd", call("fp16.hmul", a, a), c) == 0
    b, d = 1 + 2**-7, -(1 + 2**-6)
    assert call("bf16.hfma", b, b, d) == 2.0**-14
    assert call("bf16.hfma_relu", 1.0, 1.0, -3.0) == 0 and math.isnan(call("bf16.hfma_relu", nan, 1.0, 1.0))
    assert call("fp16.__hfma_sat", 1.0, 1.0, 7.0) == 1 and call("fp16.__hadd_sat", nan, 1.0) == 0


@pytest.mark.parametrize("module", ["fp16", "bf16"])
def test_comparisons_with_nan(module):
    prefix = "__" if module == "fp16" else ""
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        assert call(f"{module}.h{name}", nan, 1.0) is False
        assert call(f"{module}.{prefix}h{name}u", nan, 1.0) is True
    assert call(f"{module}.hne", 2.0, 1.0) is True and call(f"{module}.{prefix}hltu", 2.0, 1.0) is False
    assert call(f"{module}.hmax", nan, 1.0) == 1 and call(f"{module}.hmin", 2.0, nan) == 2
    assert math.isnan(call(f"{module}.{prefix}hmax_nan", nan, 1.0))
    assert math.copysign(1, call(f"{module}.hmax", -0.0, 0.0)) == 1
    assert math.copysign(1, call(f"{module}.hmin", 0.0, -0.0)) == -1
    assert [call(f"{module}.{prefix}hisinf", v) for v in (inf, -inf, nan, 1.0)] == [1, -1, 0, 0]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("fp16.__float2half_rd", 0.1, 0.0999755859375),
        ("fp16.__float2half_ru", 1e6, inf),
        ("fp16.__float2half_rz", 1e6, 65504.0),
        ("fp16.__int2half_rz", 70000, 65504.0),
        ("fp16.__ull2half_rn", 2049, 2048.0),
        ("fp16.__half2int_ru", 2.25, 3),
        ("fp16.__half2ushort_rn", -3.0, 0),
        ("fp16.__half2char_rz", 300.0, 127),
        ("fp16.__half2ll_rz", nan, -(2**63)),
        ("fp16.__half2int_rz", nan, 0),
        ("fp16.__half_as_short", -2.0, -16384),
        ("fp16.__ushort_as_half", 0x3C00, 1.0),
        ("bf16.float32_to_bfloat16_rz", 3.3999999, 3.390625),
        ("bf16.float2bfloat16", 3.3999999, 3.40625),
        ("bf16.int64_to_bfloat16_ru", 257, 258.0),
        ("bf16.uint64_to_bfloat16_rn", 2**64 - 1, 2.0**64),
        ("bf16.bfloat16_to_uint8_rz", 300.0, 255),
        ("bf16.bfloat16_to_int16_rn", -2.5, -2),
        ("bf16.bfloat16_as_uint16", 1.0, 0x3F80),
        ("bf16.int16_as_bfloat16", 0x4000, 2.0),
        ("bf16.hrint", 2.5, 2.0),
        ("bf16.hrsqrt", 4.0, 0.5),
        ("fp16.hexp10", 2.0, 100.0),
    ],
)
def test_conversions_and_values(name, value, expected):
    assert call(name, value) == expected
