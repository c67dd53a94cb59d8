"""Which ways there are to compute a product, which is predicted best, and that the one found fastest is used."""

import numpy as np
import pytest

from labkit import cuda, gemm, results
from labkit.arrays.addresses import share_memory
from labkit.calls import tuner, tuning
from labkit.calls.call import forget
from labkit.formats import E8M0, FP32
from labkit.gemm.interface import candidates, product
from labkit.gemm.interface.candidates import Candidate, Shape

SHAPE = Shape(40, 50, 60)
FORMATS = {format.name: format for format in candidates.supported_formats()}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A cache folder of this test's own, and no plans."""
    monkeypatch.setattr(tuning, "user_cache_path", lambda name: tmp_path / name)
    tuning._stored_choices.cache_clear()
    forget(product.Product)
    yield
    tuning._stored_choices.cache_clear()
    forget(product.Product)


@pytest.fixture
def timed(monkeypatch):
    """`tune` on a GPU, or as on one, on which the last candidate is the fastest; what was timed."""
    launches = {}

    def times_ms(of):
        launches.update(of)
        return {candidate: float(len(of) - i) for i, candidate in enumerate(of)}

    if not cuda.on_gpu():
        monkeypatch.setattr(tuner.device, "current", lambda: tuner.device.Device("gpu", "a GPU", ""))
        monkeypatch.setattr(cuda, "on_gpu", lambda: False)
    monkeypatch.setattr(tuning.timing, "gpu_times_ms", times_ms)
    return launches


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("name", ["float32", "tf32", "float8_e4m3"])
@pytest.mark.sample(6)
def test_the_fastest_is_kept_and_used_for_operands_that_lie_so(timed, name, transpose_b, batches, monkeypatch):
    format = FORMATS[name]
    make_plan, sets = tuner.make_plan, {}

    def made(operation, arrays, **options):
        sets[id(arrays)] = tuple(arrays.values())
        return make_plan(operation, arrays, **options)

    monkeypatch.setattr(tuner, "make_plan", made)
    times_ms = gemm.tune(24, 32, 16, name, transpose_b=transpose_b, batches=batches, most=3)
    assert list(times_ms.values()) == sorted(times_ms.values())
    assert {*timed} == {*candidates.candidates(format, Shape(24, 32, 16, batches))[:3]}
    first, second, *others = sets.values()
    assert others and not any(share_memory(X, Y) for X, Y in zip(first, second))

    used, launches = [], product.launches
    monkeypatch.setattr(product, "launches", lambda candidate, *of: used.append(candidate) or launches(candidate, *of))
    batch = (batches,) if batches > 1 else ()
    for swap in (transpose_b, not transpose_b):
        A, B = (np.zeros((*batch, *sides), format.dtype) for sides in ((24, 16), (32, 16) if swap else (16, 32)))
        gemm.multiply(A, B, transpose_b=swap, format=name)
    fastest = next(iter(times_ms))
    assert used[0] == fastest == list(timed)[-1] and used[-1] != fastest


def test_tuning_says_what_it_needs():
    with pytest.raises(ValueError, match="no format 'half'; there are float32, tf32"):
        gemm.tune(8, 8, 8, "half")
    with pytest.raises(ValueError, match=r"^float8_e8m0 is not multiplied here: give float32, tf32, .* or \w+$"):
        gemm.tune(8, 8, 8, "float8_e8m0")
    with pytest.raises(ValueError, match="at least 1"):
        gemm.tune(8, 0, 8)
    if not cuda.on_gpu():
        with pytest.raises(RuntimeError, match="on a GPU"):
            gemm.tune(8, 8, 8)


@pytest.mark.needs("gpu")
def test_a_gpu_times_and_remembers():
    times_ms = gemm.tune(64, 48, 32, "float32", most=3)
    assert len(times_ms) == 3 and min(times_ms.values()) > 0 and list(times_ms.values()) == sorted(times_ms.values())


@pytest.mark.parametrize("format", FORMATS.values(), ids=str)
def test_a_candidate_is_a_choice_in_later_processes_and_is_told_in_words(format):
    found = candidates.candidates(format, Shape(64, 4096, 4096))
    *_, last = found  # of a format that one step takes, the only one
    question = candidates.tuning_key(format, SHAPE, *(np.zeros((2, 8), format.dtype) for _ in range(3)))
    tuning.store_choice("gemm", question, last)
    tuning._stored_choices.cache_clear()
    assert tuning.stored_choice("gemm", question, found) == last
    cut = last.tiling
    assert cut is None or f"rows {cut.rows}, cols {cut.cols}" in str(last)


def test_the_estimate_prefers_small_tiles_for_small_products_and_the_last_step_for_large_ones():
    def first(*sides):
        return candidates.ranked(FP32, Shape(*sides))[0]

    assert first(4096, 4096, 4096) == first(8192, 8192, 8192) == Candidate("tuned")
    assert first(64, 64, 64).tiling.rows <= 64
    assert first(1, 4096, 4096) == Candidate("gemv")


def test_every_step_of_a_ladder_is_a_candidate_and_one_that_was_not_recorded_counts_as_the_one_before(monkeypatch):
    found = {candidate.step for candidate in candidates.candidates(FP32, SHAPE)}
    assert found == {"simt", *(step.slug for step in gemm.ladder("fp32"))}
    candidates._recorded_tflops.cache_clear()
    monkeypatch.setattr(candidates.results, "nearest", lambda *_: {})
    assert candidates._tflops(gemm.step("fp32", "tuned")) == candidates._tflops(gemm.step("fp32", "naive")) == 1
    candidates._recorded_tflops.cache_clear()


def test_what_was_recorded_counts_before_the_model(monkeypatch):
    monkeypatch.setattr(candidates, "recorded_ms", lambda step, *_: 1e-6 if step.slug == "coalesced" else None)
    candidates._candidates.cache_clear()
    try:
        assert candidates.ranked(FP32, Shape(4096, 4096, 4096))[0] == Candidate("coalesced")
        assert candidates.ranked(FP32, Shape(4096, 4096, 4096, 2))[0] != Candidate("coalesced")
    finally:
        candidates._candidates.cache_clear()


def test_on_an_h100_no_recorded_product_has_a_step_that_is_faster_than_the_first_that_was_recorded():
    times = {}
    for row in results.load("gemm", "nvidia-h100-80gb-hbm3").rows:
        times.setdefault((row["M"], row["N"], row["K"]), {})[row["step"]] = row["time_ms"]
    assert len(times) >= 4
    for sizes, of in times.items():
        ranked = [one for one in candidates.candidates(FP32, Shape(*sizes)) if one.step in of]
        assert of[ranked[0].step] <= 1.02 * min(of.values())


def test_speeds_are_those_of_this_gpu_else_of_one_of_its_capability_else_of_another(monkeypatch):
    step, asked = gemm.step("fp32", "tuned"), []
    known = {"other": {"tflops": 3.0}, "same": {}, "this": {"tflops": None}}

    def load(record, machine):
        asked.append(machine)
        return results.Results(
            record, {}, [{"step": "tuned", "problem": candidates.REFERENCE_PROBLEM} | known[machine]]
        )

    monkeypatch.setattr(candidates.results, "nearest", lambda *_: {"this": (9, 0), "same": (9, 0), "other": (8, 0)})
    monkeypatch.setattr(candidates.results, "load", load)
    candidates._recorded_tflops.cache_clear()
    try:
        assert candidates._tflops(step) == 3.0 and asked == ["this", "same", "other"]
    finally:
        candidates._recorded_tflops.cache_clear()


@pytest.mark.parametrize("name", ["float32", "tf32"])
def test_one_row_in_float32_is_a_matter_of_reading_and_a_batch_of_such_is_not(name):
    assert candidates.candidates(FORMATS[name], Shape(1, 4096, 4096)) == [Candidate("gemv")]
    assert candidates.candidates(FORMATS[name], Shape(1, 64, 64, 1000))[0] != Candidate("gemv")


@pytest.mark.parametrize("sides", [(64, 4096, 4096), (64, 64, 65536)])
def test_k_is_divided_where_tiles_are_fewer_than_sms(sides):
    assert candidates.ranked(FP32, Shape(*sides))[0].tiling.parts > 1
    assert candidates.ranked(FP32, Shape(*sides, 1320))[0].tiling.parts == 1


def test_a_deep_16_bit_product_is_divided_along_k():
    assert candidates.candidates(FORMATS["bfloat16"], Shape(64, 64, 65536))[0].parts > 8
    assert all(found.parts == 1 for found in candidates.candidates(FORMATS["bfloat16"], Shape(64, 64, 65536 + 8)))
    assert candidates.candidates(FORMATS["bfloat16"], Shape(4096, 4096, 4096))[0].parts == 1


def test_many_small_products_get_kernels_of_their_own():
    tiling = candidates.ranked(FP32, Shape(32, 32, 32, 4096))[0].tiling
    assert (tiling.rows, tiling.cols) == (32, 32)
    assert candidates.ranked(FORMATS["float16"], Shape(32, 32, 32, 4096))[0] == Candidate("small")


@pytest.mark.parametrize("shape", [SHAPE, Shape(64, 4096, 4096)])
def test_the_simulator_takes_a_step_that_it_runs_quickly(shape):
    found = candidates.candidates(FP32, shape)
    assert {*found} == {*candidates.ranked(FP32, shape)}
    assert (found[0].step == "simt") == cuda.on_gpu()


@pytest.mark.parametrize(
    ("name", "capability", "steps"),
    [
        ("bfloat16", (8, 0), {"mma", "ldmatrix", "pipelined"}),
        ("float8_e4m3", (8, 9), {"mma", "ldmatrix", "pipelined"}),
        ("float32", (7, 5), {step.slug for step in gemm.ladder("fp32")} - {"tuned"}),
        ("float32", (8, 0), {"simt", *(step.slug for step in gemm.ladder("fp32"))}),
    ],
)
def test_an_older_gpu_gets_what_it_has_instructions_for(name, capability, steps):
    found = candidates.candidates(FORMATS[name], SHAPE, capability)
    assert {candidate.step for candidate in found} == steps
    assert all(candidate.tiling is None for candidate in found if candidate.step != "simt")


def test_a_format_that_no_step_takes_has_no_candidates():
    with pytest.raises(ValueError, match="^float8_e8m0 is not multiplied here: give float32, tf32, "):
        candidates.candidates(E8M0, SHAPE, (9, 0))


@pytest.mark.parametrize(("name", "capability"), [("float8_e4m3", (8, 0)), ("bfloat16", (7, 5)), ("tf32", (8, 0))])
def test_a_gpu_that_is_too_old_is_told_so(name, capability):
    with pytest.raises(RuntimeError, match=rf"{name} on a GPU of compute capability {capability[0]}\.{capability[1]}"):
        candidates.candidates(FORMATS[name], SHAPE, capability)
