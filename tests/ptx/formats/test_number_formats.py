"""The formats of the tensor cores: every bit pattern, and rounding against the nearest neighbours."""

from math import copysign

import numpy as np
import pytest
from cells import kernel_in

import labkit
from labkit import ptx
from labkit.ptx.formats import ON_LANES
from labkit.simulator.errors import KernelError

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "q = ptx.pack2(1.5, q, ptx.BF16)": (8, 0),
    "q = ptx.pack2(1.5, q, ptx.FP16)": (8, 0),
    "q = ptx.pack4(1.5, q, q, q, ptx.E4M3)": (8, 9),
    "q = int(ptx.unpack2(q, ptx.BF16)[1])": (7, 5),
    "q = int(ptx.unpack2(q, ptx.FP16)[1])": (7, 5),
    "q = ptx.to_tf32(q)": (8, 0),
}

PACK = """
@cuda.jit
def pack(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = ptx.pack2(x[2 * i], x[2 * i + 1], FORMAT)
"""
PACK4 = """
@cuda.jit
def pack4(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = ptx.pack4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3], FORMAT)
"""
UNPACK = """
@cuda.jit
def unpack(codes, out):
    i = cuda.grid(1)
    if i < codes.size:
        out[2 * i], out[2 * i + 1] = ptx.unpack2(codes[i], FORMAT)
"""
TO_TF32 = """
@cuda.jit
def to_tf32(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = ptx.to_tf32(x[i])
"""


def run(text, given, out, **names):
    trace = labkit.simulate(kernel_in(text, ptx=ptx, **names), -(-out.size // 128), 128, given, out)
    assert not trace.errors
    return trace.outputs[1]


def value_of(code, exponent_bits, fraction_bits, has_infinity=True):
    """What a code of sign, exponent and fraction stands for, by the definition of IEEE 754."""
    fraction = code & (1 << fraction_bits) - 1
    exponent = code >> fraction_bits & (1 << exponent_bits) - 1
    sign = -1.0 if code >> fraction_bits + exponent_bits else 1.0
    bias = (1 << exponent_bits - 1) - 1
    if has_infinity and exponent == (1 << exponent_bits) - 1:
        return float("nan") if fraction else copysign(float("inf"), sign)
    if exponent == 0:
        return copysign(fraction * 2.0 ** (1 - bias - fraction_bits), sign)
    return sign * (1 + fraction / (1 << fraction_bits)) * 2.0 ** (exponent - bias)


SHAPES = {ptx.BF16: (8, 7), ptx.FP16: (5, 10)}  # bits of exponent and fraction
CODES = np.arange(1 << 16, dtype=np.uint32)


def table(exponent_bits, fraction_bits, codes=CODES):
    return np.array([value_of(int(c), exponent_bits, fraction_bits) for c in codes], np.float64)


@pytest.mark.parametrize("form", SHAPES, ids="BF16 FP16".split())
def test_halves_are_unpacked_bit_by_bit(form):
    codes = CODES[0::2] | CODES[1::2] << 16
    out = run(UNPACK, codes, np.zeros(1 << 16, np.float32), FORMAT=form)
    assert np.array_equal(out, table(*SHAPES[form]).astype(np.float32), equal_nan=True)
    assert np.signbit(out[0x8000])


def samples():
    """Numbers of all sizes, ties between neighbours among them, and what is no number."""
    rng = np.random.default_rng(5)
    random = rng.integers(0, 1 << 32, 4096, dtype=np.uint64).astype(np.uint32).view(np.float32)
    random[np.isnan(random)] = np.nan
    near_one = np.linspace(0.9, 2.1, 999).astype(np.float32)
    ties = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-25, 3 * 2.0**-25]
    ties += [2049.0, 65519.0, 65520.0]
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45, 6e-8]
    chosen = np.concatenate([random, near_one, np.float32(ties), -np.float32(ties), np.float32(ends)])
    return chosen[: len(chosen) // 2 * 2]


@pytest.mark.parametrize("form", SHAPES, ids="BF16 FP16".split())
def test_packing_takes_the_nearest_and_of_two_the_even_one(form):
    x = samples()
    out = run(PACK, x, np.zeros(x.size // 2, np.uint32), FORMAT=form)
    codes = np.stack([out & 0xFFFF, out >> 16], axis=1).reshape(-1)
    infinity = np.flatnonzero(np.isinf(table(*SHAPES[form])))[0]
    sizes = table(*SHAPES[form], CODES[: infinity + 1])
    sizes[-1] = 2 * sizes[-2] - sizes[-3]  # what the code of infinity would be worth
    for value, code in zip(x.astype(np.float64), codes.tolist()):
        if np.isnan(value):
            assert code == 0x7FFF
            continue
        assert bool(code & 0x8000) == bool(np.signbit(value))
        size, code = abs(value), code & 0x7FFF
        above = min(int(np.searchsorted(sizes, size)), infinity)
        below = above if sizes[above] == size else max(above - 1, 0)
        distance = {n: abs(min(size, 2 * sizes[-1]) - sizes[n]) for n in (below, above)}
        nearest = [n for n, d in distance.items() if d == min(distance.values())]
        assert code == (nearest[0] if len(nearest) == 1 else next(n for n in nearest if n % 2 == 0))


def test_four_bytes_are_the_nearest_numbers_of_e4m3_and_what_is_too_large_is_448():
    sizes = np.array([value_of(code, 4, 3, has_infinity=False) for code in range(0x7F)])
    between = (sizes[1:] + sizes[:-1]) / 2  # ties, of which the even code is wanted
    x = np.float32([*sizes, *between, *(between * (1 + 1e-6)), *(between * (1 - 1e-6)), 449, 1e30, np.inf, np.nan])
    wanted = [*range(0x7F), *(code + code % 2 for code in range(0x7E)), *range(1, 0x7F), *range(0x7E), *[0x7E] * 3]
    x, wanted = np.float32([*x, *-x]), np.array([*wanted, 0x7F, *(0x80 | code for code in wanted), 0x7F])
    mixed = np.random.default_rng(0).permutation(x.size // 4 * 4)
    out = run(PACK4, x[mixed], np.zeros(mixed.size // 4, np.uint32), FORMAT=ptx.E4M3)
    assert np.array_equal(out.view(np.uint8), wanted[mixed])


def test_tf32_has_ten_bits_of_fraction_and_ties_go_away_from_zero():
    x = samples()
    bits = run(TO_TF32, x, np.zeros(x.size, np.uint32))
    finite = np.isfinite(x)
    assert not (bits[finite] & 0x1FFF).any()
    below = (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    above = np.abs(below) + 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(below), 2.0**-126))), -126) - 10)
    size = np.abs(x.astype(np.float64))
    with np.errstate(invalid="ignore"):
        away = above - size <= size - np.abs(below)
    expected = np.where(away, np.where(above > 3.5e38, np.inf, above), np.abs(below))
    assert np.array_equal(np.abs(bits.view(np.float32)[finite]), expected[finite])
    assert np.array_equal(np.signbit(bits.view(np.float32)[finite]), np.signbit(x[finite]))
    assert np.isnan(bits.view(np.float32)[np.isnan(x)]).all()
    no_numbers = np.array([0x7FFFFFFF, 0xFFC00001, 0x7F802000, 0x7F801000], np.uint32)  # as seen on an H100: the last
    cut = run(TO_TF32, no_numbers.view(np.float32), np.zeros(4, np.uint32))  # becomes infinity
    assert cut.tolist() == [0x7FFFE000, 0xFFC00000, 0x7F802000, 0x7F800000]


def test_e4m3_has_no_infinity_and_one_nan_of_each_sign():
    codes = np.arange(256, dtype=np.uint32)
    decoded = ON_LANES[ptx.E4M3].decode(codes)[:, 0]
    expected = [np.nan if c & 0x7F == 0x7F else value_of(c, 4, 3, has_infinity=False) for c in range(256)]
    assert np.array_equal(decoded, np.float32(expected), equal_nan=True)
    assert (decoded[0x7E], decoded[0x01], decoded[0x38]) == (448, 2.0**-9, 1)


def test_a_register_holds_the_lowest_number_first():
    register = np.array([0x80FF7F01], np.uint32)
    assert ON_LANES[ptx.INT8].decode(register).tolist() == [[1, 127, -1, -128]]
    assert ON_LANES[ptx.TF32].decode(np.array([0x3F801FFF], np.uint32)).tolist() == [[1.0]]


def test_a_format_that_is_none_here_is_refused():
    with pytest.raises(KernelError, match=r"the format of `ptx.pack2` is `ptx.BF16` or `ptx.FP16`, not 3"):
        run(PACK, samples(), np.zeros(8, np.uint32), FORMAT=ptx.E4M3)
    with pytest.raises(KernelError, match=r"`x\[0\]` is the format, which is fixed when a kernel is compiled"):
        run(PACK.replace("FORMAT", "x[0]"), samples(), np.zeros(8, np.uint32))
    with pytest.raises(KernelError, match=r"write `FORMAT = ptx.FP16` above"):
        run(PACK.replace("FORMAT", "ptx.FP16"), samples(), np.zeros(8, np.uint32))
