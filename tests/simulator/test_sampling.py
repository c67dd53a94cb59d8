"""A few blocks stand for a grid: exactly where blocks of one place do the same, within the stated error elsewhere."""

from dataclasses import asdict

import numpy as np
import pytest

import labkit
from kernels import last_block
from labkit import cuda, gemm, views
from labkit.forecast.roofline import intensity
from labkit.simulator.errors import LaunchError
from labkit.simulator.sampling import Plan

CACHES = {"l1_hits", "l2_hits", "l2_sectors", "dram_read_bytes", "dram_write_bytes", "l2_dirty_bytes"}


@cuda.jit
def triangle(x, out):
    """Block b sums b + 1 elements, so that no two blocks do the same."""
    i = cuda.grid(1)
    total = np.float32(0)
    for k in range(cuda.blockIdx.x + 1):
        total += x[k]
    out[i] = total


def multiplied(slug, M, N, K, **options):
    step = gemm.step("fp32", slug)
    return labkit.simulate(step.kernel, *step.geometry(M, N), *gemm.Problem(M, N, K).operands(), gpu="T4", **options)


def of_triangle(blocks, **options):
    return labkit.simulate(triangle, blocks, 32, np.ones(blocks, np.float32), np.zeros(32 * blocks), **options)


def exact(trace):
    """The counters that a sample should tell exactly where the blocks of each place do the same."""
    return {name: value for name, value in asdict(trace.counters).items() if name not in {*CACHES, "sample"}}


@pytest.mark.parametrize("slug", ["coalesced", "tiled"])
@pytest.mark.parametrize("shape", [(512, 512, 32), (500, 250, 40), (33, 2000, 24)], ids=str)
def test_edges_corners_and_inside_stand_for_the_whole_grid(slug, shape):
    whole, part = multiplied(slug, *shape), multiplied(slug, *shape, sample=16)
    sample = part.counters.sample
    assert 16 <= sample.blocks_run < sample.blocks_in_grid == np.prod(whole.grid)
    assert exact(part) == exact(whole)
    assert not any(error for name, error in sample.relative_errors.items() if name not in CACHES)
    for one, other in zip(part.sites, whole.sites, strict=True):
        assert (one.accesses, one.requests, one.sectors) == (other.accesses, other.requests, other.sectors)
    assert whole.counters.sample is None


@pytest.mark.parametrize("seed", range(5))
def test_what_differs_from_block_to_block_is_told_within_its_error(seed):
    whole, part = of_triangle(600), of_triangle(600, sample=100, seed=seed)
    error = part.counters.sample.relative_errors["global_loads"]
    assert 0 < error < 0.1
    assert part.counters.global_loads == pytest.approx(whole.counters.global_loads, rel=4 * error)
    assert part.counters.flops == pytest.approx(whole.counters.flops, rel=4 * error)


def test_l1_sees_the_blocks_that_share_its_sm():
    """It starts empty in each group, so where its lines live no longer than a block, hits are as in the whole grid."""
    whole, part = (multiplied("naive", 320, 320, 512, **options) for options in ({}, {"sample": 40}))
    assert 0.5 < whole.counters.l1_hit_rate < 0.99
    assert part.counters.l1_hit_rate == pytest.approx(whole.counters.l1_hit_rate, abs=0.01)
    assert part.counters.l2_sectors == pytest.approx(whole.counters.l2_sectors, rel=0.05)


def test_a_sample_says_that_it_is_one():
    part = of_triangle(500, sample=20)
    assert part.outputs == ()
    assert part.counters.l2_hits is None and part.counters.dram_read_bytes is None
    assert "blocks of it" in repr(part)
    (finding,) = [f for f in part.findings if f.kind == "sample"]
    assert f"{part.counters.sample.blocks_run} of 500 blocks ran" in finding.message
    with pytest.raises(ValueError, match="does not tell DRAM bytes"):
        intensity(part)
    with pytest.raises(ValueError, match="only a sample of `triangle` ran"):
        views.roofline({"triangle": part})


def test_a_sample_as_large_as_the_grid_is_the_whole_run():
    assert of_triangle(5, sample=5).counters == of_triangle(5).counters
    assert of_triangle(3, sample=1).counters == of_triangle(3).counters  # first, between and last


def test_blocks_that_are_recorded_or_inspected_run():
    part = of_triangle(5000, sample=10, record=((4321, 0, 0),), inspect=(1234, 7))
    assert part.samples.blocks == ((4321, 0, 0),) and len(part.samples)
    assert part.steps


def test_blocks_that_depend_on_one_another_are_not_sampled():
    x = np.ones(6 * 64, np.float32)
    arguments = (x, np.zeros(6, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32))
    with pytest.raises(LaunchError, match="leave `sample` out"):
        labkit.simulate(last_block, 6, 64, *arguments, sample=2)


@pytest.mark.parametrize("sample", [0, -3, 1.5, "auto", True])
def test_a_wrong_sample_gets_one_sentence(sample):
    with pytest.raises(LaunchError, match="sample is how many blocks to run at least"):
        of_triangle(100, sample=sample)


def test_a_launch_too_large_to_run_whole_is_told_to_be_sampled():
    @cuda.jit
    def fills(out):
        out[cuda.grid(1) % out.size] = 1

    out = np.zeros(100, np.int32)
    with pytest.raises(LaunchError, match=r"or a sample of its blocks, `labkit.simulate\(..., sample=64\)`"):
        labkit.simulate(fills, 2**24, 1024, out)
    assert labkit.simulate(fills, 2**24, 1024, out, sample=64).counters.global_stores == 2**34


def test_a_race_in_the_blocks_that_run_is_found():
    @cuda.jit
    def racy(out):
        out[0] = cuda.grid(1)

    assert any(f.kind == "race" for f in labkit.simulate(racy, 1000, 32, np.zeros(1), sample=10).errors)


@pytest.mark.parametrize("grid", [(1, 1, 1), (2, 1, 1), (40, 30, 1), (7, 5, 3), (1000, 1, 2)], ids=str)
def test_every_place_of_a_grid_is_in_the_plan(grid):
    plan = Plan(grid, sms=4, resident=2, min_blocks=1)
    blocks = np.prod(grid)
    assert sum(stratum.size for stratum in plan.strata) == blocks
    counted = np.concatenate([c for stratum in plan.strata for c in stratum.clusters.values()])
    assert len(set(counted.tolist())) == len(counted)
    corners = {(x, y, z) for x in (0, grid[0] - 1) for y in (0, grid[1] - 1) for z in (0, grid[2] - 1)}
    assert {x + grid[0] * (y + grid[1] * z) for x, y, z in corners} <= set(counted.tolist())
    for group in plan.groups:
        assert len(set(group % 4)) == 1 and len(set(group // 8)) == 1  # of one SM and one wave


def test_estimates_are_right_on_average_and_so_are_their_errors():
    """Over many samples: unbiased, and off by twice the stated error about as seldom as that promises."""
    rng = np.random.default_rng(3)
    work = rng.gamma(2.0, 100, 3000).astype(np.int64)
    plans = [Plan((60, 50, 1), sms=10, resident=4, min_blocks=400, seed=seed) for seed in range(120)]
    told = [plan.estimate({b: work[b : b + 1] for g in plan.groups for b in g.tolist()}) for plan in plans]
    totals, errors = np.array(told)[..., 0].T
    assert totals.mean() == pytest.approx(work.sum(), rel=0.01)
    assert totals.std() == pytest.approx(np.sqrt((errors**2).mean()), rel=0.25)
    assert (abs(totals - work.sum()) < 2 * errors).mean() > 0.9
