"""The convolution problem: shapes, oracle, bounds, parts, and what bad input is told."""

from dataclasses import asdict, replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from random_convolutions import convolutions

from labkit import cuda, ladder
from labkit.conv import BackwardData, BackwardFilter, Forward, output_size, pads
from labkit.conv.fft.problem import SpectralForward
from labkit.conv.winograd.problem import Forward4x4, Forward6x6
from labkit.formats import BF16, FP16, FP32

ASYMMETRIC = Forward(2, 4, 7, 9, 6, 3, 2, 2, 1, 0, 2, 1, 0, 1, 3, 2)


def along(layout, n, channel, row, col):
    """The index of a pixel in a layout."""
    return (n, channel, row, col) if layout == "NCHW" else (n, row, col, channel)


def seven_loops(problem, x, w):
    """The outputs by their definition, one product after another."""
    y = np.zeros(problem.shapes["y"])
    C, K = problem.C // problem.groups, problem.K // problem.groups
    for n, k, p, q in product(*map(range, (problem.N, problem.K, problem.P, problem.Q))):
        total = 0.0
        for c, r, s in product(range(C), range(problem.R), range(problem.S)):
            row = p * problem.stride_h + r * problem.dilation_h - problem.top
            col = q * problem.stride_w + s * problem.dilation_w - problem.left
            if 0 <= row < problem.H and 0 <= col < problem.W:
                tap = (problem.R - 1 - r, problem.S - 1 - s) if problem.flipped else (r, s)
                pixel = x[along(problem.layout, n, k // K * C + c, row, col)]
                total += pixel * w[along(problem.layout, k, c, *tap)]
        y[along(problem.layout, n, k, p, q)] = total
    return y


@settings(max_examples=60)
@given(problem=convolutions(Forward, large={"pixels": 3}))
def test_the_oracle_is_the_seven_loops(problem):
    x, w, _, _ = problem.operands(seed=1)
    found = problem.oracle(x, w)
    assert found.dtype == np.float64 and found.shape == problem.shapes["y"]
    np.testing.assert_allclose(found, seven_loops(problem, x.astype(float), w.astype(float)), rtol=1e-12, atol=1e-12)


@settings(max_examples=60)
@given(problem=convolutions(Forward, large={"pixels": 3}))
def test_the_backward_directions_are_adjoint_to_the_forward_one(problem):
    """<y, conv(x, w)> = <x, data(w, y)> = <w, filter(x, y)>, which no other linear maps fulfil for all x, w and y."""
    rng = np.random.default_rng(3)
    x, w, y = (rng.standard_normal(problem.shapes[name]) for name in "xwy")
    forward = np.vdot(y, problem.oracle(x, w))
    backward_data, backward_filter = BackwardData(**asdict(problem)), BackwardFilter(**asdict(problem))
    scale = np.vdot(abs(y), problem.oracle(abs(x), abs(w)))
    assert np.vdot(x, backward_data.oracle(w, y)) == pytest.approx(forward, abs=1e-12 * scale)
    assert np.vdot(w, backward_filter.oracle(x, y)) == pytest.approx(forward, abs=1e-12 * scale)


@pytest.mark.needs("torch")
@settings(max_examples=40)
@given(problem=convolutions(Forward, {"layout": ("NCHW",), "flipped": (False,)}))
def test_the_oracles_are_what_torch_computes(problem):
    import torch

    x, w, _, _ = problem.operands()
    x, w = (torch.from_numpy(X).double().requires_grad_() for X in (x, w))
    padded = torch.nn.functional.pad(x, (problem.left, problem.right, problem.top, problem.bottom))
    strides, dilations = (problem.stride_h, problem.stride_w), (problem.dilation_h, problem.dilation_w)
    y = torch.nn.functional.conv2d(padded, w, None, strides, 0, dilations, problem.groups)
    gradient = torch.randn(y.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y.backward(gradient)
    images, filters, outputs = (X.detach().numpy() for X in (x, w, gradient))
    for found, expected in (
        (problem.oracle(images, filters), y.detach().numpy()),
        (BackwardData(**asdict(problem)).oracle(filters, outputs), x.grad.numpy()),
        (BackwardFilter(**asdict(problem)).oracle(images, outputs), w.grad.numpy()),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


# --- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ((128, 11), 118),  # layer 1 of the cuDNN paper's Table 2
        ((224, 7, 2, 3, 3), 112),  # the first layer of ResNet-50
        ((56, 3, 1, 1, 1), 56),
        ((7, 3, 2), 3),
        ((8, 3, 2), 3),
        ((7, 3, 1, 0, 0, 3), 1),  # taps on pixels 0, 3 and 6
        ((6, 3, 1, 0, 0, 3), 0),
        ((1, 1, 5), 1),
    ],
)
def test_output_size(given, size):
    assert output_size(*given) == size


@pytest.mark.parametrize(
    ("given", "zeros"),
    [
        (("valid", 9, 3), (0, 0)),
        (("same", 9, 3), (1, 1)),
        (("same", 9, 4), (1, 2)),  # the one more stands behind
        (("same", 9, 1), (0, 0)),
        (("same", 9, 3, 1, 2), (2, 2)),
        (("same", 224, 7, 2), (2, 3)),
        (("same", 5, 1, 3), (0, 0)),  # fewer than none are needed
        (("full", 9, 3), (2, 2)),
        (("full", 9, 3, 2, 4), (8, 8)),
    ],
)
def test_pads(given, zeros):
    assert pads(*given) == zeros


def test_paddings_give_the_outputs_that_they_are_named_for():
    for size, taps, stride, dilation in product((1, 5, 8), (1, 2, 3), (1, 2, 3), (1, 2)):
        same = output_size(size, taps, stride, *pads("same", size, taps, stride, dilation), dilation)
        assert same == -(-size // stride)
        full = output_size(size, taps, 1, *pads("full", size, taps, 1, dilation), dilation)
        assert full == size + dilation * (taps - 1)


def test_a_full_turned_convolution_multiplies_polynomials():
    a, b = np.array([[[[1.0, 2, 3]]]]), np.array([[[[4.0, 5]]]])
    problem = Forward(1, 1, 1, 3, 1, 1, 2, left=1, right=1, flipped=True)
    assert problem.oracle(a, b).ravel().tolist() == [4, 13, 22, 15]
    assert replace(problem, flipped=False).oracle(a, b).ravel().tolist() == [5, 14, 23, 12]


@pytest.mark.parametrize("function", [partial(output_size, 5, 3), partial(pads, "same", 5, 3)])
def test_a_stride_of_no_pixels_is_reported(function):
    with pytest.raises(ValueError, match="^the stride is 0, but it must be at least 1$"):
        function(stride=0)


def test_an_unknown_padding_is_told():
    with pytest.raises(ValueError, match="there is no padding 'some': say valid, same or full, or give numbers"):
        pads("some", 9, 3)


def test_shapes_flops_and_least_bytes():
    problem = Forward(2, 4, 7, 9, 6, 3, 2, top=1, left=1, groups=2)
    assert (problem.P, problem.Q) == (6, 9)
    assert problem.shapes == {"x": (2, 4, 7, 9), "w": (6, 2, 3, 2), "y": (2, 6, 6, 9)}
    channels_last = replace(problem, layout="NHWC").shapes
    assert channels_last == {"x": (2, 7, 9, 4), "w": (6, 3, 2, 2), "y": (2, 6, 9, 6)}
    assert problem.flops == 2 * (2 * 6 * 6 * 9) * (2 * 3 * 2)
    elements = 2 * 4 * 7 * 9 + 6 * 2 * 3 * 2 + 2 * 6 * 6 * 9
    assert problem.min_bytes() == 4 * elements and problem.min_bytes(BF16) == 2 * elements


def test_what_differs_from_a_plain_convolution_is_said():
    assert str(Forward(2, 3, 8, 8, 4, 3, 3)) == "2x3x8x8 4x3x3"
    assert str(Forward(2, 3, 8, 8, 4, 3, 3, stride_w=2, left=1, layout="NHWC")) == (
        "2x3x8x8 4x3x3 stride_w=2 left=1 layout=NHWC"
    )


# --- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"C": 0}, "C is 0, but it must be at least 1"),
        ({"stride_w": 0}, "stride_w is 0, but it must be at least 1"),
        ({"dilation_h": -1}, "dilation_h is -1, but it must be at least 1"),
        ({"groups": 0}, "groups is 0, but it must be at least 1"),
        ({"top": -1}, "top is -1 rows or columns of zeros, but beyond 2 a filter meets zeros alone: use 0 to that"),
        ({"bottom": 3}, "bottom is 3 rows or columns of zeros, but beyond 2 "),
        ({"left": 2}, "left is 2 rows or columns of zeros, but beyond 1 "),
        ({"right": 4, "dilation_w": 3}, "right is 4 rows or columns of zeros, but beyond 3 "),
        ({"groups": 3, "K": 6}, "C is 4, which 3 groups do not divide: choose groups that do"),
        ({"groups": 4}, "K is 6, which 4 groups do not divide: choose groups that do"),
        ({"H": 2}, "the filter of 3 x 2 taps does not fit into the image of 2 x 9 with its padding, so that there is"),
        ({"dilation_w": 9}, "the filter of 3 x 2 taps does not fit into the image of 7 x 9"),
        ({"layout": "CHWN"}, "there is no layout 'CHWN': say NCHW or NHWC"),
    ],
)
@pytest.mark.parametrize("kind", [Forward, BackwardData, BackwardFilter])
def test_sizes_that_make_no_convolution_get_one_sentence(kind, sizes, says):
    plain = {"N": 2, "C": 4, "H": 7, "W": 9, "K": 6, "R": 3, "S": 2}
    kind(**plain)
    with pytest.raises(ValueError, match="^" + says) as caught:
        kind(**plain | sizes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"x": [[1.0]]}, TypeError, "x is a list, not an array: make it one with np.array"),
        ({"w": np.zeros((6, 2, 3, 2))}, TypeError, "w holds float64, but this step takes float32: convert it"),
        (
            {"x": np.zeros((2, 3, 7, 9), np.float32)},
            ValueError,
            "x, the images, is 2 x 3 x 7 x 9, but NCHW of this convolution is 2 x 4 x 7 x 9: give it that shape, or",
        ),
        (
            {"w": np.zeros((6, 4, 3, 2), np.float32)},
            ValueError,
            "w, the filters, is 6 x 4 x 3 x 2, but KCRS of this convolution is 6 x 2 x 3 x 2",
        ),
        ({"y": np.zeros((2, 6, 4), np.float32)}, ValueError, "y, the outputs, is 2 x 6 x 4, but NCHW of this"),
    ],
)
def test_bad_operands_get_one_sentence(change, error, says):
    operands = dict(zip("xwy", ASYMMETRIC.operands(), strict=False))
    ASYMMETRIC.check(*operands.values())
    ASYMMETRIC.check(*map(cuda.to_device, operands.values()))
    with pytest.raises(error, match="^" + says) as caught:
        ASYMMETRIC.check(*(operands | change).values())
    assert "\n" not in str(caught.value)


def test_images_in_the_other_layout_get_one_sentence():
    x, w, y, problem = replace(ASYMMETRIC, layout="NHWC").operands()
    problem.check(x, w, y)
    with pytest.raises(ValueError, match="^x, the images, is 2 x 7 x 9 x 4, but NCHW of this convolution is 2 x 4 x"):
        ASYMMETRIC.check(x, w, y)
    with pytest.raises(ValueError, match="^w, the filters, is 6 x 2 x 3 x 2, but KRSC of this convolution is 6 x 3 x"):
        problem.check(x, ASYMMETRIC.operands()[1], y)


@pytest.mark.parametrize("name", ["x", "w", "y"])
def test_gaps_in_memory_are_told(name):
    *arrays, problem = Forward(2, 4, 7, 9, 6, 3, 2).operands()
    arrays = dict(zip("xwy", arrays, strict=True))
    arrays[name] = np.asfortranarray(arrays[name])
    with pytest.raises(ValueError, match=rf"^{name}, the .*, is not in C order.*pass np.ascontiguousarray\({name}\)"):
        problem.check(*arrays.values())


def test_a_step_that_does_not_apply_says_why():
    takes = {"groups": (1,), "layout": ("NCHW", "NHWC")}
    assert replace(ASYMMETRIC, groups=1).misfit(takes) == ASYMMETRIC.misfit({}) == ""
    why = "this step takes groups = 1, and the convolution has groups = 2"
    assert ASYMMETRIC.misfit(takes) == why
    assert ASYMMETRIC.misfit({"stride_h": (1, 3)}).startswith("this step takes stride_h = 1 or 3, and")
    with pytest.raises(ValueError, match=f"^{why}: choose another step$"):
        ASYMMETRIC.check(*ASYMMETRIC.operands()[:3], supported=takes)


# --- bounds and parts ------------------------------------------------------------------------------


def test_operands_are_drawn_and_the_result_is_unwritten():
    for kind, unwritten in ((Forward, 2), (BackwardData, 0), (BackwardFilter, 1)):
        *arrays, problem = kind(**asdict(ASYMMETRIC)).operands(seed=1)
        assert problem == kind(**asdict(ASYMMETRIC))
        assert [np.isnan(X).all() for X in arrays] == [place == unwritten for place in range(3)]
        assert [X.shape for X in arrays] == [problem.shapes[name] for name in "xwy"]
        assert all((X != Y).any() for X, Y in zip(arrays, problem.operands(seed=2), strict=False))


@pytest.mark.parametrize("kind", [Forward, BackwardData, BackwardFilter])
def test_the_bound_holds_for_float32_and_not_for_coarser_arithmetic(kind):
    problem = kind(2, 24, 12, 12, 24, 3, 3, top=1, bottom=1, left=1, right=1)
    operands = problem.operands()
    place = "xwy".index(problem.result)
    (expected,) = problem.expected(operands).values()
    inputs = [X for at, X in enumerate(operands[:3]) if at != place]
    assert expected.holds(problem.oracle(*inputs).astype(np.float32))
    coarse = [X.astype(np.float16) for X in inputs]
    assert not expected.holds(problem.oracle(*coarse))
    inputs[0].flat[100] = 0
    assert not expected.holds(problem.oracle(*inputs)), "a product left out"


@pytest.mark.parametrize("kind", [Forward, SpectralForward, Forward4x4, Forward6x6])
def test_one_lost_tap_of_one_filter_shows_among_many_channels(kind):
    problem = kind(1, 512, 9, 9, 3, 3, 3, top=1, bottom=1, left=1, right=1)
    x, w, y, _ = problem.operands()
    assert problem.is_right((x, w, y, problem), (x, w, problem.oracle(x, w).astype(np.float32), problem))
    lost = w.copy()
    lost[1, 200, 2, 0] = 0
    assert not problem.is_right((x, w, y, problem), (x, w, problem.oracle(x, lost).astype(np.float32), problem))


@pytest.mark.parametrize("format", [BF16, FP16], ids=str)
def test_a_result_in_a_short_format_may_be_rounded_once(format):
    problem = replace(ASYMMETRIC, layout="NHWC")
    operands = problem.operands(format)
    (expected,) = problem.expected(operands, format).values()
    rounded = format.result.decode(format.result.encode(expected.value))
    assert expected.holds(rounded) and (rounded != expected.value).any()
    assert not expected.holds(rounded * (1 + 4 * format.result.rounding))


@pytest.mark.parametrize(
    ("kind", "terms"), [(Forward, 4 * 3 * 2), (BackwardData, 6 * 3 * 2), (BackwardFilter, 2 * 5 * 8)]
)
def test_how_many_products_a_result_has(kind, terms):
    assert kind(2, 4, 7, 9, 6, 3, 2).terms == terms


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", [Forward, BackwardData, BackwardFilter])
def test_a_part_of_a_large_problem_is_computed_as_in_the_whole(kind, layout, monkeypatch):
    problem = kind(9, 10, 8, 7, 11, 3, 2, top=1, layout=layout)
    operands = problem.operands(seed=5)
    assert problem.checked_part(operands) is operands
    (whole,) = problem.expected(operands).values()
    monkeypatch.setattr("labkit.conv.problem.LARGE", 0)
    place = "xwy".index(problem.result)
    part = problem.checked_part(operands)
    small = part[3]
    sizes = {"N": 9, "C": 10, "K": 11} | dict.fromkeys(problem._sampled_axes, 6)
    assert tuple(sizes.values()) == (small.N, small.C, small.K)
    (found,) = problem.expected(part).values()
    right = list(operands)
    right[place] = whole.value.astype(np.float32)
    assert found.value.shape == small.shapes[problem.result] and found.value.size < whole.value.size
    np.testing.assert_allclose(problem.checked_part(tuple(right))[place], found.value, rtol=1e-5, atol=1e-5)
    assert ladder.relative_error(problem, {place: found}, tuple(right), FP32) < 1e-6
    right[place].flat[0] = np.nan
    assert np.isnan(ladder.relative_error(problem, {place: found}, tuple(right), FP32)), "an unwritten element"


def test_sizes_are_whole_numbers():
    sizes = 128, 64, 64, 64, 128, 9, 9
    assert Forward(*map(np.int32, sizes)) == Forward(*sizes) and Forward(*map(np.int32, sizes)).flops > 2**38
    with pytest.raises(TypeError, match="H is 4.5, but it must be a whole number"):
        Forward(1, 2, 4.5, 6, 2, 3, 3)
    with pytest.raises(TypeError, match="flipped is 'no': say True or False"):
        Forward(1, 2, 6, 6, 2, 3, 3, flipped="no")


@pytest.mark.parametrize("step", [step for of in ladder.ladders("conv") for step in of], ids=lambda step: step.path)
def test_a_step_refuses_a_problem_of_another_direction(step):
    for direction in (Forward, BackwardData, BackwardFilter):
        if direction.result != step.problem.result:
            with pytest.raises(ValueError, match=f"this step takes result = {step.problem.result}"):
                step.launches(*direction(1, 2, 6, 6, 2, 3, 3).operands())


def test_a_step_without_sizes_asks_for_them():
    x, w, y, _ = ASYMMETRIC.operands()
    with pytest.raises(TypeError, match=r"^None is not a problem: give the sizes last, as Forward\(\.\.\.\)$"):
        ladder.ladder("conv", "direct").step("naive").launches(x, w, y, None)


@pytest.mark.parametrize("name", ["N", "stride_h", "dilation_w"])
def test_a_size_beyond_32_bits_is_told(name):
    with pytest.raises(ValueError, match=f"{name} is 8589934592, but"):
        Forward(**{"N": 1, "C": 3, "H": 9, "W": 8, "K": 6, "R": 3, "S": 1} | {name: 2**33})
