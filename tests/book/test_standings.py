"""Every kernel of the book has a place under the roofline, with recordings and without."""

import pytest

from labkit import gemm, results
from labkit.book import standings as book
from labkit.machine.gpus import GPU_BY_DRIVER_NAME, GPUS


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


@pytest.fixture(scope="module")
def ladders():
    """The steps of both ladders, with few steps along K."""
    with pytest.MonkeyPatch.context() as patch:
        found = {}
        for name, K in (("fp32", 32), ("tensor", 64)):
            patch.setattr(gemm.ladder(name).module, "ROOFLINE_PROBLEM", (128, 256, K))
            found |= book.of(gemm.ladder(name))
        return found


def test_blas_stands_at_the_intensity_of_its_formula():
    found = book.blas()
    expected = {"axpy": 1 / 6, "dot": 1 / 4, "nrm2": 1 / 2, "gemv": 1 / 2, "gemv_t": 1 / 2}
    assert found.keys() == expected.keys()
    for name, standing in found.items():
        assert standing.intensity == pytest.approx(expected[name], rel=0.05)
        assert all(trace.errors == () for trace in standing.traces)


def test_every_step_of_the_ladders_is_there(ladders):
    assert list(ladders) == [step.slug for name in ("fp32", "tensor") for step in gemm.ladder(name)]


def test_no_step_computes_more_than_its_problem(ladders):
    """A problem of half a tile would halve what a step can reach."""
    for name, standing in ladders.items():
        (trace,) = standing.traces
        assert trace.counters.flops_by_dtype[standing.precision] == standing.flops, name


def test_a_step_stands_only_on_gpus_that_have_what_it_uses(ladders):
    assert list(ladders["tiled"].gpus) == list(GPUS)
    assert "V100" not in ladders["tuned"].gpus and "A100 SXM" in ladders["tuned"].gpus  # cp.async
    hopper = [name for name, gpu in GPUS.items() if gpu.compute_capability == (9, 0)]
    assert list(ladders["wgmma"].gpus) == hopper and "H100 SXM" in hopper
    assert "RTX 4090" in ladders["mma"].gpus and "T4" not in ladders["mma"].gpus
    assert "A100 SXM" not in ladders["pipelined"].gpus  # more shared memory than a block gets there


def test_only_some_steps_are_run_where_these_are_asked_for():
    assert list(book.gemm_fp32(("tiled", "naive"))) == ["naive", "tiled"]


def test_without_recordings_nothing_is_missing_but_what_was_measured(recordings):
    assert not any(standing.measured_tflops for standing in book.blas().values())
    assert book.batches("float16") == book.libraries() == {}


def test_what_was_recorded_with_the_large_problem_counts(recordings):
    recordings(
        "blas",
        {"step": "dot", "problem": str(2**28), "dtype": "float32", "tflops": 0.75},
        {"step": "dot", "problem": str(2**24), "dtype": "float32", "tflops": 0.5},
        {"step": "axpy", "problem": str(2**24), "dtype": "float32", "tflops": 0.1},
    )
    found = book.blas()
    assert found["dot"].measured_tflops == {"H100 SXM": 0.75} and found["dot"].intensity == 0.25
    assert found["nrm2"].measured_tflops == found["axpy"].measured_tflops == {}


def test_batches_are_named_by_their_inputs(recordings):
    recordings(
        "batch",
        {"dtype": "float16", "batch": 1, "tflops": 2.0, "gb_s": 2000.0},
        {"dtype": "float32", "batch": 1, "tflops": 1.0, "gb_s": 2000.0},
    )
    (name, one), *others = book.batches("float16").items()
    assert (name, one.precision, one.intensity, others) == ("batch 1", "float16 tensor", 1.0, [])
    assert one.measured_tflops == {"H100 SXM": 2.0}


def test_the_librarys_speed_is_that_recorded_beside_the_steps(recordings):
    large = gemm.step("fp32", "tiled").compared
    row = {"step": "tiled", "problem": str(large), "dtype": "float32"}
    recordings(
        "gemm",
        {**row, "baseline": "CUDA C++", "baseline_time_ms": 9.0},
        {**row, "baseline": "cuBLAS fp32", "baseline_time_ms": large.flops / 50e9},
    )
    assert book.libraries()["cuBLAS float32"].measured_tflops == {"H100 SXM": pytest.approx(50)}


def test_recorded_gpus_have_their_figures():
    assert set(GPU_BY_DRIVER_NAME.values()) == GPUS.keys()
    for machine, operation in results.recorded():
        gpu = results.load(operation, machine).header.get("gpu")
        assert gpu is None or gpu in GPU_BY_DRIVER_NAME


def test_steps_of_one_name_are_told_apart(monkeypatch):
    monkeypatch.setattr(book, "of", lambda ladder: {step.slug: ladder.path for step in ladder})
    found = book.standings()
    assert found["gemm/fp32/naive"] == "gemm/fp32" and found["conv/direct/naive"] == "conv/direct"
    assert found["registers"] == "conv/direct"
