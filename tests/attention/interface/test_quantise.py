"""`attention.quantise`: the very codes and scales that NumPy makes, for arrays of any kind, and what is refused."""

import numpy as np
import pytest

from labkit import attention, cuda
from labkit.attention.fp8 import quantise as kernels
from labkit.attention.fp8.problem import AttentionFP8, quantise_blocks
from labkit.formats import BF16, E4M3, FP16, FP32
from labkit.simulator.in_place import simulate_in_place

NAMES = {BF16: "bfloat16", FP16: None, FP32: None}


def numbers(format, queries=70, keys=300, head_dim=48):
    """Q, K and V whose rows differ in size, with a block of zeros."""
    rng = np.random.default_rng(0)
    shapes = (2, 4, queries, head_dim), (2, 2, keys, head_dim), (2, 2, keys, head_dim)
    Q, K, V = (rng.standard_normal(shape) * 9 ** rng.uniform(-1, 1, (*shape[:3], 1)) for shape in shapes)
    K[0, 1, 128:256] = V[1, 1, :128] = 0
    return [format.encode(X.astype(np.float32)) for X in (Q, K, V)]


@pytest.mark.parametrize("format", NAMES, ids=str)
def test_codes_and_scales_are_those_of_numpy(format):
    given = numbers(format)
    wanted = quantise_blocks(*map(format.decode, given))
    for found in (
        attention.quantise(*given, format=NAMES[format]),
        [X.copy_to_host() for X in attention.quantise(*map(cuda.to_device, given), format=NAMES[format])],
    ):
        assert all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))


SPECIAL = {
    "not a number": (1.0, {7: np.nan, 400: np.nan}),
    "infinite": (1.0, {7: np.inf, 400: -np.inf}),
    "huge": (1e38, {}),
    "tiny": (1e-38, {}),
    "less than any scale": (1e-44, {}),
    "zeros": (-0.0, {}),
}


@pytest.mark.parametrize(("size", "others"), SPECIAL.values(), ids=SPECIAL)
def test_numbers_at_the_ends_of_float32_are_those_of_numpy_too(size, others):
    X = np.clip(numbers(FP32, 130, 130)[1], -3, 3) * np.float32(size)
    X.flat[list(others)] = list(others.values())
    wanted = quantise_blocks(X, X, X)
    for one, other in zip(attention.quantise(X, X, X), wanted, strict=True):
        assert np.array_equal(one, other, equal_nan=one.dtype == np.float32)
    codes, _, _, scale, *_ = wanted
    if not np.isinf(X).any():
        back = E4M3.decode(codes[0, 0, :128]) * scale[0, 0, 0].astype(np.float64)
        given = X[0, 0, :128].astype(np.float64)
        assert (scale >= np.finfo(np.float32).tiny).all() and np.array_equal(np.isnan(back), np.isnan(given))
        assert (np.abs(back - given)[~np.isnan(given)] <= max(size / 5, 1e-36)).all()


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_tensors_are_taken_as_they_are(dtype):
    import torch

    Q, K, V = (torch.randn(2, 4, 300, 64, device="cuda", dtype=getattr(torch, dtype)) for _ in range(3))
    wanted = quantise_blocks(*(X.float().cpu().numpy() for X in (Q, K, V)))
    found = [X.view(torch.uint8) if X.itemsize == 1 else X for X in attention.quantise(Q, K, V)]
    assert all(np.array_equal(one.cpu().numpy(), other) for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize("format", NAMES, ids=str)
@pytest.mark.parametrize(("keys", "head_dim"), [(1, 16), (129, 128), (47, 112)])
def test_kernels_have_no_error(format, keys, head_dim):
    given = numbers(format, keys, keys, head_dim)
    shapes = AttentionFP8(2, 4, keys, head_dim, keys, 2).shapes
    for X, name in zip(given, "QKV"):
        codes, scales = np.zeros(shapes[name], np.uint8), np.zeros(shapes[f"{name.lower()}_scale"], np.float32)
        one = kernels.launch(X, codes, scales, format, transposed=name == "V")
        assert simulate_in_place(one.kernel, one.grid, one.block, *one.arguments).errors == ()


def test_the_step_computes_attention_of_what_it_made():
    Q, K, V = numbers(FP32, 130, 300, 64)
    made = attention.quantise(Q, K, V)
    problem = AttentionFP8(2, 4, 130, 64, 300, 2, True)
    before = (*made, *problem.operands()[6:])
    after = attention.ladder("fp8").step("block_scaled").simulate(*before).operands
    assert problem.is_right(before, after, E4M3)
    plain = problem.unquantised
    exact = plain.expected((Q, K, V, None, None, plain))[3].value
    off = BF16.decode(after[6]) - exact
    assert 0.02 < np.linalg.norm(off) / np.linalg.norm(exact) < 0.2


def test_arrays_of_the_host_may_have_gaps():
    given = numbers(FP32)
    turned = [np.ascontiguousarray(X.swapaxes(1, 2)).swapaxes(1, 2) for X in given]
    for one, other in zip(attention.quantise(*turned), quantise_blocks(*given), strict=True):
        assert np.array_equal(one, other)


def test_what_makes_no_attention_is_refused():
    Q, K, V = numbers(FP32)
    shifted = cuda.to_device(np.zeros(V.size + 1, np.float32))[1:].reshape(*V.shape)
    for arrays, kind, why in (
        ((Q[0], K, V), ValueError, "Q is 4 x 70 x 48: give it 4 axes"),
        ((Q, K, V[:, :, 1:]), ValueError, "they do not fit together"),
        ((Q, K[..., :8], V[..., :8]), ValueError, "they do not fit together"),
        ((Q, K.astype(np.float16), V), TypeError, "Q holds float32 and K float16"),
        ((Q, None, V), TypeError, "K is None: give an array"),
        (tuple(np.ascontiguousarray(X[..., :24]) for X in (Q, K, V)), ValueError, "head_dim is 24, but copies take"),
        (tuple(X[:, :, :, :32] for X in map(cuda.to_device, (Q, K, V))), ValueError, "is not in C order"),
        ((Q, K, shifted), ValueError, "V begins 4 bytes after a multiple of 16: copy it"),
    ):
        with pytest.raises(kind, match=why):
            attention.quantise(*arrays)


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.parametrize("format", NAMES, ids=str)
def test_kernels_assemble_without_spills(format, tmp_path):
    from argument_types import argument_type
    from assembler import assembled, ptx_for_the_oldest

    given = numbers(format)
    shapes = AttentionFP8(2, 4, 70, 48, 300, 2).shapes
    for X, name in zip(given[1:], "KV"):
        codes, scales = np.zeros(shapes[name], np.uint8), np.zeros(shapes[f"{name.lower()}_scale"], np.float32)
        one = kernels.launch(X, codes, scales, format, transposed=name == "V")
        code, targets = ptx_for_the_oldest(one.kernel, [argument_type(a) for a in one.arguments], [(8, 9), (9, 0)])
        assert targets[0] == (8, 9) and ".f64" not in code
        report, _ = assembled(code, targets[-1], tmp_path)
        assert "0 bytes spill stores, 0 bytes spill loads" in report
