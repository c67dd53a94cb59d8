"""What the appendix "The whole ladder" says of records, chapters, years and GPUs."""

import re
from itertools import groupby

import pytest

from labkit import gpu, places
from labkit.book.contents import source
from labkit.book.ideas import CONFIRMED, ideas
from labkit.book.rungs import CHAPTERS, chapter
from labkit.book.rungs import rungs as rungs_of_the_book
from labkit.gemm import ladder
from labkit.ladder import every_ladder

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")
NOTEBOOKS = places.PACKAGE.parent / "notebooks"


@pytest.fixture(scope="module")
def rungs():
    return rungs_of_the_book()


@pytest.fixture(scope="module")
def by_name(rungs):
    return {f"{rung.ladder}/{rung.step}": rung for rung in rungs}


def text_of(slug):
    return source(NOTEBOOKS, slug).read_text(encoding="utf-8")


def test_every_recorded_ladder_is_there_in_the_order_of_the_book(rungs):
    unrecorded = {"elementwise/gated_gelu", "conv/depthwise", "conv/tensor_gradients"}
    assert {rung.ladder for rung in rungs} == {each.path for each in every_ladder()} - unrecorded
    firsts = [next(group).chapter for _, group in groupby(rungs, key=lambda rung: rung.ladder)]
    assert firsts == sorted(firsts)
    unmeasured = {rung.step for rung in rungs if rung.ratio is None}
    assert unmeasured == {"recomputed", "unaligned", "lanes", "wide"}


def test_a_chapter_names_the_ladder_that_it_teaches():
    for name, slug in CHAPTERS.items():
        operation, ladder_name = [*name.split("/"), ""][:2]
        named = rf'\b{operation}\b|"{ladder_name}"' if ladder_name else rf"\b{operation}\b"
        assert re.search(named, text_of(slug)), f"{slug} has nothing of {name}"


def test_a_step_is_said_to_be_taught_where_its_name_stands():
    for path in ("gemm/fp32/tiled", "gemm/tensor/ldmatrix", "gemm/tensor/split", "attention/forward/ping_pong"):
        operation, name, slug = path.split("/")
        step = next(each for each in every_ladder() if each.path == f"{operation}/{name}").step(slug)
        assert slug in text_of(chapter(step))


def test_first_steps_gain_most(by_name):
    naive, register_tile, tuned = (by_name[f"gemm/fp32/{name}"].ratio for name in ("naive", "register_tile", "tuned"))
    assert round(register_tile / naive) == 32 and round(tuned / register_tile, 1) == 1.5
    assert by_name["gemm/tensor/persistent"].ratio > 1, "keeps up with cuBLAS"


def test_a_step_can_lose(by_name):
    for slower, faster in (
        ("conv/direct/halo", "conv/direct/naive"),
        ("softmax/forward/online", "softmax/forward/three_reads"),
        ("gemm/tensor/split", "gemm/tensor/persistent"),
    ):
        assert by_name[slower].ratio < by_name[faster].ratio
        assert by_name[slower].problem == by_name[faster].problem


def test_the_library_is_not_the_roof(rungs, by_name):
    assert all(rung.share > 1 for rung in rungs if rung.ladder == "conv/winograd")
    shares = [rung.share > 1 for rung in rungs if rung.ladder == "conv/fft"]
    assert sum(shares) > len(shares) / 2
    best = max((rung for rung in rungs if rung.ladder == "norm/batch"), key=lambda rung: rung.share)
    assert best.ratio > 1 and best.library == "torch.compile" and best.share < 0.75
    assert round(100 * by_name["attention/forward/persistent"].share) == 66
    assert round(100 * by_name["gemm/tensor/persistent"].share) == 80


def test_almost_half_of_the_steps_reach_a_library(rungs):
    measured = [rung for rung in rungs if rung.ladder != "loops" and rung.ratio is not None]
    close = [rung for rung in measured if rung.ratio >= 0.95]
    assert 0.43 < len(close) / len(measured) < 0.5
    behind = {rung.ladder for rung in measured} - {rung.ladder for rung in close}
    assert behind == {"conv/direct", "conv/im2col", "conv/implicit_gemm", "gemm/fp32", "attention/backward"}


def test_where_ladders_stop(rungs, by_name):
    def last(ladder, name):
        return [rung.step for rung in rungs if rung.ladder == ladder and name in rung.gpus][-1]

    assert last("gemm/tensor", "A100 SXM") == "ldmatrix" and by_name["gemm/tensor/pipelined"].needs == (8, 0)
    assert last("attention/forward", "A100 SXM") == "pipelined"
    assert last("norm/batch", "A100 SXM") == "in_registers"
    assert "V100" not in by_name["gemm/fp32/tuned"].gpus and "A100 SXM" in by_name["gemm/fp32/tuned"].gpus
    assert not any("V100" in rung.gpus for rung in rungs if rung.ladder == "gemm/tensor")
    for path in ("gemm/tensor/persistent", "attention/forward/persistent"):
        assert "H100 SXM" in by_name[path].gpus and "B200" not in by_name[path].gpus
    assert "B200" in by_name["norm/batch/overlapped"].gpus, "clusters"


def test_the_ridge_doubled_and_stayed():
    ridges = [
        gpu(name).peak_tflops["float16 tensor"] * 1000 / gpu(name).dram_gb_s
        for name in ("V100", "H100 SXM", "H200", "B200")
    ]
    assert 2 < ridges[1] / ridges[0] < 2.2 and abs(ridges[3] / ridges[1] - 1) < 0.02 and ridges[2] < ridges[1]


def test_shared_memory_and_l2_of_a_tile():
    persistent = ladder("tensor").step("persistent")
    M, N, K = persistent.BM, persistent.BN, 2 * persistent.BK
    assert (M, N, K) == (128, 256, 64) and 4 * M * N == 128 * 512 * 4 // 2, "half of tensor memory"
    A, B = 2 * M * K, 2 * N * K

    def cycles(name):
        device = gpu(name)
        return 2 * M * N * K / (device.peak_tflops["bfloat16 tensor"] * 1000 / device.sms / device.clock_ghz)

    assert [
        round(100 * read / 128 / cycles(name))
        for name, read in (("H100 SXM", A + 2 * B), ("B200", A + B), ("B200", A + B // 2))
    ] == [58, 70, 47]
    limits = {name: gpu(name).l2_bytes_per_clock / gpu(name).sms for name in ("H100 SXM", "B200")}
    assert (A + B) / cycles("B200") > limits["B200"] > (A + B // 2) / cycles("B200")
    assert (A + B) / cycles("H100 SXM") > limits["H100 SXM"]


def test_years_are_those_of_the_chapters_or_confirmed():
    """An author and the year stand together in a chapter or a docstring, unless a source is given."""
    texts = [
        path.read_text(encoding="utf-8") for path in (NOTEBOOKS / "source").glob("*.md") if "whole" not in path.stem
    ]
    texts += [path.read_text(encoding="utf-8") for path in places.PACKAGE.rglob("*.py") if path.stem != "ideas"]
    together = re.sub(r"\s+", " ", " ".join(texts))
    for idea in ideas():
        author = re.split(r"[ ,]", "Since" if idea.authors == "NVIDIA" else idea.authors)[0]
        cited = re.search(rf"\b{author}\b[^.]{{0,170}}\b{idea.year}\b", together)
        assert cited or idea.title in CONFIRMED, (idea.authors, idea.year)


def test_half_of_the_ideas_are_older_than_2013():
    years = [idea.year for idea in ideas()]
    assert years == sorted(years) and sum(year < 2013 for year in years) == len(years) // 2
