"""The bound by norms is kept on hard data, and what a wrong kernel would give breaks it."""

from dataclasses import replace

import numpy as np
import pytest

from labkit import ladder
from labkit.arrays.workspace import Workspace
from labkit.conv.fft.problem import SpectralData, SpectralFilter, SpectralForward

SIZES = (2, 5, 11, 13, 4, 3, 5, 1, 1, 1, 0, 2, 1)
STEPS = ladder.ladder("conv", "fft")


def random(rng, shape):
    return rng.standard_normal(shape)


def cancelling(rng, shape):
    """Large numbers of both signs, whose sums are small."""
    return 1e4 * (-1.0) ** np.arange(np.prod(shape)).reshape(shape) + rng.standard_normal(shape)


def of_all_sizes(rng, shape):
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)


def positive(rng, shape):
    return rng.random(shape)


def one_pixel(rng, shape):
    """Nearly nothing but a single large number."""
    made = 1e-3 * rng.standard_normal(shape)
    made.flat[rng.integers(made.size)] = 1e6
    return made


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.slug)
@pytest.mark.parametrize("draw", [random, cancelling, of_all_sizes, positive, one_pixel])
@pytest.mark.sample(12)
def test_a_step_keeps_the_bound_on_hard_data(step, draw):
    problem, rng = step.problem(*SIZES), np.random.default_rng(7)
    before = tuple(
        draw(rng, X.shape).astype(np.float32) if isinstance(X, np.ndarray) else X for X in problem.operands()
    )
    assert problem.is_right(before, step.simulate(*before).operands)


def test_the_bound_of_each_element_is_of_what_it_is_made_of():
    for kind, position in ((SpectralForward, 2), (SpectralData, 0), (SpectralFilter, 1)):
        problem = kind(*SIZES)
        operands = [X.astype(np.float64) if isinstance(X, np.ndarray) else X for X in problem.operands()]
        expected = problem.expected(tuple(operands))[position]
        assert expected.bound.shape == expected.value.shape
        for place in {0, 1, 2} - {position}:
            axis = problem.shared_axes["xwy"[place]]
            operands[place][(slice(None),) * axis + (0,)] = 0
        changed = problem.expected(tuple(operands))[position].bound
        assert (changed[0] == 0).all() and (changed[:, 0] == 0).all()
        np.testing.assert_array_equal(changed[1:, 1:], expected.bound[1:, 1:])


def convolved(x, w, problem, conjugate=True, nyquist=1.0, imaginary_zero=False, side=16, first=(0, 0)):
    """The outputs through frequencies, with what a kernel may do wrong."""
    X = np.fft.rfft2(problem._pad(x), (side, side))
    W = np.fft.rfft2(w, (side, side))
    Y = np.einsum("ncuv,kcuv->nkuv", X, W.conj() if conjugate else W)
    Y[..., side // 2] *= nyquist
    if imaginary_zero:
        Y[..., 0] = Y[..., 0].real
    rows, cols = first
    return np.fft.irfft2(Y, (side, side))[..., rows : rows + problem.P, cols : cols + problem.Q]


@pytest.mark.parametrize(
    "fault",
    [
        {"conjugate": False},
        {"nyquist": 0.0},
        {"nyquist": 2.0},
        {"imaginary_zero": True},
        {"first": (1, 0)},
        {"side": 12},  # the end of the image wraps around
    ],
    ids=str,
)
def test_what_a_wrong_kernel_gives_is_not_right(fault):
    problem = SpectralForward(*SIZES)
    x, w, *_ = before = problem.operands()
    assert problem.is_right(before, (x, w, convolved(x, w, problem), problem))
    assert not problem.is_right(before, (x, w, convolved(x, w, problem, **fault), problem))


@pytest.mark.parametrize(
    ("slug", "launch", "argument", "wrong"),
    [
        ("tiled", 0, 5, np.float32(1)),  # the filters' spectra are no conjugates
        ("tiled", 1, 6, 0),  # the images begin a row too late
        ("tiled", 3, 5, 1),  # the outputs do
        ("backward_data", 3, 5, 0),  # what wrapped around is kept
        ("backward_filter", 0, 5, np.float32(1)),  # conjugates of the outputs' spectra are missing
    ],
)
def test_a_wrong_launch_is_not_right(slug, launch, argument, wrong):
    step = STEPS.step(slug)
    problem = step.problem(*SIZES)
    before = problem.operands()
    for changes in ({}, {argument: wrong}):
        after = tuple(X.copy() if isinstance(X, np.ndarray) else X for X in before)
        launches = step.launches(*after, workspace=Workspace())
        kept = launches[launch]
        arguments = [changes.get(place, value) for place, value in enumerate(kept.arguments)]
        assert not changes or arguments[argument] != kept.arguments[argument]
        launches[launch] = replace(kept, arguments=tuple(arguments))
        for one in launches:
            one.run()
        assert problem.is_right(before, after) == (not changes)
