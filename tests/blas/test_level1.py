"""copy, axpy, dot and nrm2: within their bounds of float64, on any vector, with the same bits in every run."""

import numpy as np
import pytest

from labkit import cuda
from labkit.arrays.workspace import Workspace
from labkit.blas import axpy, copy, dot, nrm2
from labkit.blas.problem import EPS, dot_bound, dot_oracle

LENGTHS = [1, 3, 255, axpy.CHUNK, dot.CHUNK, nrm2.CHUNK, nrm2.CHUNK + 1, 50_003]
CUTS = {
    "whole": slice(None),
    "misaligned": slice(1, None),
    "every second": slice(None, None, 2),
    "backwards": slice(None, None, -1),
}


def vectors(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)


def result(launch, *operands):
    out = np.full(1, np.nan, np.float32)
    launch(*operands, out)
    return out[0]


def within_one_in_a_thousand_of_its_bound(found, x, y):
    """A parallel sum errs far less than the bound allows the worst order of additions."""
    return abs(found - dot_oracle(x, y)) <= dot_bound(x, y) * max(1e-3, 4 / x.size)


@pytest.mark.parametrize("n", LENGTHS)
def test_dot(n):
    x, y = vectors(n)
    assert within_one_in_a_thousand_of_its_bound(result(dot.launch, x, y), x, y)


@pytest.mark.parametrize("n", LENGTHS)
def test_nrm2(n):
    x, _ = vectors(n)
    assert result(nrm2.launch, x) == pytest.approx(np.linalg.norm(x.astype(np.float64)), rel=1e-6)


@pytest.mark.parametrize("n", LENGTHS)
def test_axpy(n):
    x, y = vectors(n)
    expected = np.float64(2.5) * x + y
    axpy.launch(2.5, x, y)
    assert (np.abs(y - expected) <= 2 * EPS * (np.abs(expected) + np.abs(2.5 * x))).all()


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_any_cut_of_a_vector_will_do(cut):
    x, y = (vector[cut] for vector in vectors(10_001))
    on_gpu = [cuda.to_device(vector)[cut] for vector in vectors(10_001)]
    assert within_one_in_a_thousand_of_its_bound(result(dot.launch, *on_gpu), x, y)
    assert result(nrm2.launch, on_gpu[0]) == pytest.approx(np.linalg.norm(x.astype(np.float64)), rel=1e-6)
    whole = cuda.to_device(vectors(10_001)[1])
    copy.launch(on_gpu[0], whole[cut])
    assert (whole.copy_to_host()[cut] == x).all()
    whole = cuda.to_device(vectors(10_001)[1])
    axpy.launch(3, on_gpu[0], whole[cut])
    np.testing.assert_allclose(whole.copy_to_host()[cut], 3 * x + y, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1e-42, 1e-38, 1e-30, 1e-20, 1, 1e15, 1e19, 1e30, 1e35])
def test_nrm2_neither_overflows_nor_underflows(size):
    x = (vectors(30_000)[0] * size).astype(np.float32)
    assert result(nrm2.launch, x) == pytest.approx(np.linalg.norm(x.astype(np.float64)), rel=1e-6)


def test_nrm2_of_numbers_of_all_sizes_at_once():
    x = np.float32([3e-40, 4e-20, 1, 2, 2e20, 3e25, 4e25])
    assert result(nrm2.launch, x) == pytest.approx(5e25, rel=1e-6)
    assert result(nrm2.launch, x[:4]) == pytest.approx(np.sqrt(5), rel=1e-6)
    assert result(nrm2.launch, x[:1]) == pytest.approx(3e-40, rel=1e-5)
    assert result(nrm2.launch, np.zeros(5, np.float32)) == 0


@pytest.mark.parametrize("place", [0, 9_999, 10_000])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_nrm2_of_what_is_no_number(value, place):
    x = vectors(10_001)[0]
    x[place] = value
    np.testing.assert_equal(result(nrm2.launch, x), np.float32(abs(value)))


@pytest.mark.parametrize("step", [dot, nrm2], ids=["dot", "nrm2"])
def test_two_runs_give_the_same_bits_and_leave_the_counters_as_they_were(step):
    x, y = map(cuda.to_device, vectors(200_001))
    operands = (x, y) if step is dot else (x,)
    workspace = Workspace()
    results = []
    for _ in range(3):
        out = cuda.to_device(np.full(1, np.nan, np.float32))
        for launch in step.launches(*operands, out, workspace=workspace):
            launch.run()
        results.append(out.copy_to_host()[0])
        assert workspace.counters(1).copy_to_host()[0] == 0
    assert len({result.tobytes() for result in results}) == 1
    assert result(step.launch, *operands) == results[0]


@pytest.mark.parametrize("n", [20_000, 20_003])
@pytest.mark.parametrize("step", [dot, nrm2, axpy], ids=lambda step: step.slug)
def test_there_is_no_error_and_every_byte_is_moved_once(step, n):
    problem = step.problem(n)
    run = step.simulate(*problem.operands())
    assert run.errors == ()
    (trace,) = run.traces
    of_vectors = sum(counted.sectors for counted in trace.sites if counted.site.array in ("x", "y"))
    moved = problem.min_bytes() / 32
    assert moved <= of_vectors <= moved + 8


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: dot.launch(x, x[:-1], x), "x has 5 and y has 4 elements: make them equally long"),
        (lambda x: nrm2.launch(x.astype(np.float64), x), "x holds float64, and this kernel takes float32"),
        (lambda x: axpy.launch(1, [1.0], x), "x is a list, not an array"),
        (lambda x: nrm2.launch(x[:0], x), "x is empty"),
        (lambda x: nrm2.launch(x[None], x), "x has 2 dimensions and needs 1"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_a_sentence(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(np.ones(5, np.float32))
