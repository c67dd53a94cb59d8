"""What `gemm.tune` found is used, from a file that may be missing, spoilt, of other kernels, or not to be written."""

import json
import os

import numpy as np
import pytest

from labkit import cuda, gemm
from labkit.arrays.views import share_memory
from labkit.gemm.interface import candidates, choices, tuner
from labkit.gemm.interface.candidates import Candidate, Shape
from labkit.gemm.interface.precisions import PRECISIONS

FLOAT32 = PRECISIONS["float32"]
SHAPE = Shape(40, 50, 60)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A cache folder of this test's own."""
    monkeypatch.setattr(choices, "user_cache_path", lambda name: tmp_path / name)
    forget()
    yield tmp_path
    forget()


def forget():
    """As a new process begins."""
    choices._choice.cache_clear()
    choices._found.cache_clear()


def test_a_choice_holds_in_later_processes():
    estimate = choices.choice(FLOAT32, SHAPE)
    other = next(c for c in candidates.candidates(FLOAT32, SHAPE) if c != estimate)
    choices.remember(FLOAT32, SHAPE, other)
    assert choices.choice(FLOAT32, SHAPE) == other
    forget()
    assert choices.choice(FLOAT32, SHAPE) == other
    assert choices.choice(FLOAT32, Shape(40, 50, 60, 2)) == estimate
    choices.remember(FLOAT32, Shape(1, 1, 1), estimate)
    forget()
    assert choices.choice(FLOAT32, SHAPE) == other


def test_choices_that_another_process_adds_meanwhile_are_kept():
    estimate = choices.choice(FLOAT32, SHAPE)
    other = next(c for c in candidates.candidates(FLOAT32, SHAPE) if c != estimate)
    file = choices.cache_file(choices.gpu_name())
    choices.write(file, {choices._key(FLOAT32, SHAPE): other.as_data()})
    choices.remember(FLOAT32, Shape(1, 1, 1), estimate)
    forget()
    assert choices.choice(FLOAT32, SHAPE) == other


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:30],
        lambda content: "",
        lambda content: "[1, 2]",
        lambda content: "[" * 100_000,
        lambda content: json.dumps({"choices": 3, "kernels": choices.hash_of_kernels()}),
        lambda content: content.replace(choices.hash_of_kernels(), "of others"),
        lambda content: content.replace('"vectorised"', '"no such step"'),
        lambda content: content.replace('"vectorised"', "[]"),
    ],
)
def test_a_file_that_says_nothing_is_no_choice(spoil):
    estimate = choices.choice(FLOAT32, SHAPE)
    choices.remember(FLOAT32, SHAPE, Candidate("vectorised"))
    path = choices.cache_file(choices.gpu_name())
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    forget()
    assert choices.choice(FLOAT32, SHAPE) == estimate != Candidate("vectorised")
    A, B, _ = gemm.Problem(*SHAPE[:3]).operands()
    assert np.allclose(gemm.multiply(A, B), A @ B, atol=1e-4)
    choices.remember(FLOAT32, SHAPE, Candidate("vectorised"))
    forget()
    assert choices.choice(FLOAT32, SHAPE) == Candidate("vectorised")


@pytest.fixture
def timed(monkeypatch):
    """`tune` on a GPU, or as on one, on which the last candidate is the fastest; the launches that were timed."""
    launches = {}

    def times_ms(of):
        launches.update(of)
        return {candidate: float(len(of) - i) for i, candidate in enumerate(of)}

    if not cuda.on_gpu():
        monkeypatch.setattr(tuner.device, "current", lambda: tuner.device.Device("gpu", "a GPU", ""))
        monkeypatch.setattr(tuner.cuda, "on_gpu", lambda: False)
    monkeypatch.setattr(tuner.timing, "gpu_times_ms", times_ms)
    return launches


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "tf32", "float8_e4m3"])
def test_the_fastest_is_kept(timed, dtype, batches):
    times_ms = gemm.tune(24, 20, 16, dtype, batches=batches, most=3)
    shape = Shape(24, 20, 16, batches)
    assert list(times_ms.values()) == sorted(times_ms.values())
    assert list(timed) == candidates.candidates(PRECISIONS[dtype], shape)[:3]
    assert choices.choice(PRECISIONS[dtype], shape) == next(iter(times_ms)) == list(timed)[-1]
    sets = [launch.args[2] for launch in next(iter(timed.values()))]
    assert len(sets) > 1 and not any(share_memory(X, Y) for X, Y in zip(sets[0], sets[1]))
    assert [X.shape[-2:] for X in sets[0]] == [(24, 16), (20, 16), (24, 20)]


def test_a_file_that_cannot_be_written_is_a_warning(timed, monkeypatch):
    def refused(*_):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(choices, "write", refused)
    with pytest.warns(UserWarning, match="for this process alone"):
        times_ms = gemm.tune(24, 20, 16, "float32")
    assert choices.choice(FLOAT32, Shape(24, 20, 16)) == next(iter(times_ms))


def test_tuning_says_what_it_needs():
    with pytest.raises(ValueError, match="no precision 'half'; there are float32, tf32, bfloat16"):
        gemm.tune(8, 8, 8, "half")
    with pytest.raises(ValueError, match="at least 1"):
        gemm.tune(8, 0, 8)
    if not cuda.on_gpu():
        with pytest.raises(RuntimeError, match="on a GPU"):
            gemm.tune(8, 8, 8)


@pytest.mark.needs("gpu")
def test_a_gpu_times_and_remembers():
    times_ms = gemm.tune(64, 48, 32, "float32", most=3)
    assert len(times_ms) == 3 and min(times_ms.values()) > 0 and list(times_ms.values()) == sorted(times_ms.values())
    assert choices.choice(FLOAT32, Shape(64, 48, 32)) == next(iter(times_ms))


def test_the_estimate_prefers_small_tiles_for_small_products_and_the_last_step_for_large_ones():
    def first(*sides):
        return candidates.candidates(FLOAT32, Shape(*sides))[0]

    assert first(4096, 4096, 4096) == first(8192, 8192, 8192) == Candidate("tuned")
    assert first(64, 64, 64) == Candidate("tiled")
    assert first(1, 4096, 4096) == Candidate("gemv")


def test_parts_of_k_are_tried_where_they_may_pay():
    def tried(*sides):
        return [found for found in candidates.candidates(FLOAT32, Shape(*sides)) if found.splits > 1]

    assert tried(1024, 1024, 1024) and not tried(32768, 32768, 4096)


@pytest.mark.parametrize("name", ["float32", "tf32"])
def test_one_row_in_float32_is_a_matter_of_reading_and_a_batch_of_such_is_not(name):
    assert candidates.candidates(PRECISIONS[name], Shape(1, 4096, 4096)) == [Candidate("gemv")]
    assert candidates.candidates(PRECISIONS[name], Shape(1, 64, 64, 1000))[0] != Candidate("gemv")


def test_the_kernels_whose_change_is_noticed_are_those_that_are_chosen():
    sources = {path.parent.name for folder in choices.SOURCES for path in (choices.PACKAGE / folder).rglob("*.py")}
    assert {"fp32", "tensor", "interface", "blas"} <= sources


@pytest.mark.parametrize("sides", [(1024, 1024, 1024), (64, 4096, 4096), (64, 64, 65536)])
def test_the_estimate_takes_parts_of_k_where_tiles_are_fewer_than_sms(sides):
    assert candidates.candidates(FLOAT32, Shape(*sides))[0].splits > 1
    assert all(found.splits == 1 for found in candidates.candidates(FLOAT32, Shape(*sides, 16)))


@pytest.mark.parametrize(
    ("name", "capability", "steps"),
    [
        ("bfloat16", (8, 0), {"mma", "ldmatrix", "pipelined"}),
        ("float8_e4m3", (8, 9), {"mma", "ldmatrix", "pipelined"}),
        ("float32", (7, 5), set(candidates.RATES["fp32"]) - {"tuned"}),
    ],
)
def test_an_older_gpu_gets_what_it_has_instructions_for(name, capability, steps):
    found = candidates.candidates(PRECISIONS[name], SHAPE, capability)
    assert {candidate.step for candidate in found} == steps
    assert all(candidate.tiling is None for candidate in found)


def test_a_tiling_is_a_choice_too():
    precision, shape = PRECISIONS["float16"], Shape(1, 4096, 4096)
    estimate, *others = candidates.candidates(precision, shape)
    choices.remember(precision, shape, others[2])
    forget()
    assert choices.choice(precision, shape) == others[2] != estimate
    assert f"rows {others[2].tiling.rows}, cols {others[2].tiling.cols}" in str(others[2])


@pytest.mark.parametrize(("name", "capability"), [("float8_e4m3", (8, 0)), ("bfloat16", (7, 5)), ("tf32", (8, 0))])
def test_a_gpu_that_is_too_old_is_told_so(name, capability):
    with pytest.raises(RuntimeError, match=rf"{name} on a GPU of compute capability {capability[0]}\.{capability[1]}"):
        candidates.candidates(PRECISIONS[name], SHAPE, capability)
