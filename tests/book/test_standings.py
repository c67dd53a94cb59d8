"""Every kernel of the book has a place under the roofline, with recordings and without."""

import pytest

from labkit import gemm, results
from labkit.book import standings as book
from labkit.gpus import GPUS, NAMES_OF_DRIVER


@pytest.fixture
def recordings(tmp_path, monkeypatch):
    """Stands for labkit/results; gives a function that records rows for an H100."""
    recorded, load = results.recorded, results.load
    monkeypatch.setattr(results, "recorded", lambda folder=tmp_path: recorded(folder))
    monkeypatch.setattr(results, "load", lambda operation, machine: load(operation, machine, tmp_path))

    def record(operation, *rows):
        header = {"gpu": "NVIDIA H100 80GB HBM3"}
        results.save(results.Results(operation, header, list(rows)), header["gpu"], tmp_path)

    return record


def test_blas_stands_at_the_intensity_of_its_formula():
    found = book.blas()
    expected = {"axpy": 1 / 6, "dot": 1 / 4, "nrm2": 1 / 2, "gemv": 1 / 2, "gemv_t": 1 / 2}
    assert found.keys() == expected.keys()
    for name, standing in found.items():
        assert standing.intensity == pytest.approx(expected[name], rel=0.05)
        assert standing.trace.errors == ()


def test_every_step_of_the_ladders_is_there(monkeypatch):
    monkeypatch.setattr(book, "OF_FP32", gemm.Problem(128, 128, 32))
    monkeypatch.setattr(book, "OF_TENSOR", gemm.Problem(128, 256, 64))
    assert list(book.gemm_fp32()) == [step.slug for step in gemm.ladder("fp32")]
    assert list(book.gemm_tensor()) == [step.slug for step in gemm.ladder("tensor")]


def test_no_step_computes_more_than_its_problem(monkeypatch):
    """A problem of half a tile would halve what a step can reach."""
    for name in ("OF_FP32", "OF_TENSOR"):
        problem = getattr(book, name)
        monkeypatch.setattr(book, name, gemm.Problem(problem.M, problem.N, 64))
    for name, standing in {**book.gemm_fp32(), **book.gemm_tensor()}.items():
        assert standing.trace.counters.flops_by_dtype[standing.precision] == standing.flops, name


def test_without_recordings_nothing_is_missing_but_what_was_measured(recordings):
    assert not any(standing.measured_tflops for standing in book.blas().values())
    assert book.batches("float16") == {}


def test_the_largest_recorded_problem_counts(recordings):
    recordings(
        "blas",
        {"step": "dot", "tflops": 0.5, "gb_s": 2000.0},
        {"step": "dot", "tflops": 0.75, "gb_s": 3000.0},
        {"step": "axpy", "tflops": 0.1, "gb_s": 600.0},
    )
    found = book.blas()
    assert found["dot"].measured_tflops == {"H100 SXM": 0.75} and found["dot"].intensity == 0.25
    assert found["nrm2"].measured_tflops == {}


def test_batches_are_named_by_their_inputs(recordings):
    recordings(
        "batch",
        {"dtype": "float16", "batch": 1, "tflops": 2.0, "gb_s": 2000.0},
        {"dtype": "float32", "batch": 1, "tflops": 1.0, "gb_s": 2000.0},
    )
    (name, one), *others = book.batches("float16").items()
    assert (name, one.precision, one.intensity, others) == ("batch 1", "float16 tensor", 1.0, [])
    assert one.measured_tflops == {"H100 SXM": 2.0}


def test_recorded_gpus_have_their_figures():
    assert set(NAMES_OF_DRIVER.values()) == GPUS.keys()
    for machine, operation in results.recorded():
        gpu = results.load(operation, machine).header.get("gpu")
        assert gpu is None or gpu in NAMES_OF_DRIVER
