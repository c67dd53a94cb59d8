"""The fft ladder beyond its examples: larger tiles, sizes that a step does not take, and what it counts."""

import numpy as np
import pytest

from labkit import ladder
from labkit.arrays.workspace import Workspace
from labkit.conv.fft import s02_tiled
from labkit.conv.fft.problem import SpectralForward
from labkit.conv.layers import TABLE_2, batched
from labkit.simulator.in_place import simulate_in_place

STEPS = ladder.ladder("conv", "fft")


@pytest.mark.parametrize("side", s02_tiled.SIDES)
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.sample(4)
def test_tiles_of_each_size_are_right(side, flipped):
    pixels = side + side // 2
    problem = SpectralForward(1, 2, pixels, pixels - 3, 3, 4, 5, 1, 1, 2, 1, 3, 0, flipped=flipped)
    before = problem.operands(seed=3)
    after = tuple(X.copy() if isinstance(X, np.ndarray) else X for X in before)
    for launch in s02_tiled.launches(*after, Workspace(), side):
        options = {"shared_bytes": launch.shared_bytes}
        assert simulate_in_place(launch.kernel, launch.grid, launch.block, *launch.arguments, **options).errors == ()
    assert problem.is_right(before, after)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.slug)
@pytest.mark.sample(3)
def test_a_product_of_more_than_a_tile_is_right(step):
    """More channels, filters and images than one tile of the product, or one step along its sum, takes."""
    problem = step.problem(3, 35, 6, 5, 37, 2, 2, 1, 1, 1, 0, 0, 1)
    before = problem.operands(seed=5)
    run = step.simulate(*before)
    assert run.errors == ()
    assert problem.is_right(before, run.operands)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.slug)
def test_what_a_step_does_not_take_is_told(step):
    for name in ("stride_h", "dilation_w", "groups"):
        problem = step.problem(1, 2, 8, 8, 2, 2, 2, **{name: 2})
        with pytest.raises(ValueError, match=f"takes {name} = 1, and the convolution has {name} = 2"):
            step.launches(*problem.operands(), workspace=Workspace())


@pytest.mark.parametrize(
    ("slug", "pixels", "taps", "told"),
    [("whole", 130, 1, "130 x 130 pixels, and 128 x 128"), ("tiled", 70, 65, "65 x 65 taps, and tiles have 64 x 64")],
)
def test_what_is_too_large_is_told(slug, pixels, taps, told):
    problem = SpectralForward(1, 1, pixels, pixels, 1, taps, taps)
    with pytest.raises(ValueError, match=told):
        STEPS.step(slug).launches(*problem.operands(), workspace=Workspace())


def test_tiles_fit_the_layers_of_the_paper():
    chosen = [s02_tiled.choose_side(SpectralForward(*layer)) for layer in batched(128, TABLE_2)]
    assert chosen[1:] == [64, 32, 16, 16]  # one tile an image, which fits exactly or nearly so


def test_workspace_is_what_the_docstring_says():
    problem, workspace = SpectralForward(2, 4, 20, 20, 6, 5, 5), Workspace()
    s02_tiled.launches(*problem.operands(), workspace, 16)
    stated = 8 * (16 * 16 / 2 + 2) * (4 * 2 * 4 + 6 * 4 + 6 * 2 * 4)
    assert 0 <= workspace.size_bytes - stated < 3 * 256


def test_whole_images_cost_what_the_docstring_says():
    problem = SpectralForward(2, 3, 16, 16, 4, 3, 3)
    forth, _, product, back = STEPS.step("whole").simulate(*problem.operands()).traces
    for trace in (forth, back):
        assert trace.counters.barriers == (2 * 4 + 3) * np.prod(trace.grid)
        assert trace.shared_bytes == 8 * 16 * 17
    assert product.counters.global_loads == 4 * 3 * 16 * 9 * 2 * 4  # of 4 bytes: both parts of both


def test_a_product_takes_three_real_ones_instead_of_four():
    problem = SpectralForward(2, 8, 16, 16, 4, 3, 3)
    of_four, of_three = (
        STEPS.step(slug).simulate(*problem.operands()).traces[2] for slug in ("tiled", "three_products")
    )
    outputs_of_four, outputs_of_three = (
        np.prod(trace.grid) * np.prod(trace.block) * 32 for trace in (of_four, of_three)
    )
    assert of_four.counters.flops / outputs_of_four == 8 * 8
    assert of_three.counters.flops / outputs_of_three == 8 * (6 + 1 / 4 + 1 / 8) + 3


@pytest.mark.parametrize("taps", [(1, 2), (11, 3), (12, 3)])
def test_filters_of_few_and_of_many_taps_are_right(taps):
    step = STEPS.step("few_taps")
    problem = step.problem(1, 3, 18, 17, 34, *taps)
    before = problem.operands(seed=8)
    run = step.simulate(*before)
    assert run.errors == () and problem.is_right(before, run.operands)
    assert (run.traces[0].kernel == "few_taps") == (max(taps) <= 11)
