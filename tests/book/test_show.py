import re
from html import unescape

import pytest

from labkit import gemm, places
from labkit.blas import gemv
from labkit.book import show
from labkit.gemm.fp32 import s03_tiled, s10_tuned

FILE = places.PACKAGE / "gemm" / "fp32" / "s03_tiled.py"


def text(html):
    return unescape(re.sub("<style>.*?</style>|<[^>]*>", "", html, flags=re.S))


def test_a_kernel_is_shown_as_it_stands_in_its_file():
    listing = show(s03_tiled.tiled)
    assert listing.python in FILE.read_text(encoding="utf-8")
    assert listing.python.startswith("@cuda.jit\ndef tiled(")


def test_each_line_stands_beside_its_number_in_the_file():
    lines = FILE.read_text(encoding="utf-8").splitlines()
    listing = show(s03_tiled.tiled)
    for shown in (repr(listing), text(listing._repr_html_()).split("tiled in CUDA C++")[0].strip("\n")):
        for line in shown.splitlines():
            if not line.strip():  # between constants and kernel
                continue
            number, code = re.fullmatch(r" *(\d+)(.*)", line).groups()
            assert code.strip() == lines[int(number) - 1].strip()


def test_constants_stand_above_the_kernel_that_names_them():
    shown = repr(show(s10_tuned.tuned))
    assert "WARPS_Y, WARPS_X = BM // WM, BN // WN" in shown and "BM, BN, BK = " in shown
    assert shown.index("BM, BN, BK = ") < shown.index("def tuned")
    assert "A_STEP" not in shown  # it is for a function that the kernel calls


def test_constants_that_a_kernel_imports_stand_above_it_under_the_name_of_their_file():
    heading, *lines = repr(show(gemm.general)).splitlines()
    path = "labkit/gemm/library/constants.py"
    assert heading.strip() == f"# {path}"
    constants = lines[: lines.index("")]
    of_file = (places.PACKAGE.parent / path).read_text(encoding="utf-8").splitlines()
    for line in constants:
        number, code = re.fullmatch(r" *(\d+)  (.*)", line).groups()
        assert code == of_file[int(number) - 1]
    shown = "\n".join(constants)
    for name in ("STAGES = 4", "BM, BN = ", "WARPS = "):  # the last is for its decorator
        assert name in shown
    assert "BOX = " not in shown  # it is for a function that the kernel calls


def test_functions_that_it_calls_are_folded_beneath_it():
    html = show(s10_tuned.tuned)._repr_html_()
    folded = {title: text(code) for title, code in re.findall("<summary>(.*?)</summary>(.*?)</details>", html, re.S)}
    for name in ("copy_tiles", "swizzle", "load_rows", "multiply"):
        assert f"def {name}(" in folded[f"{name}, which it uses"]
    assert "A_STEP, B_STEP = " in folded["copy_tiles, which it uses"]


def test_functions_of_other_files_are_shown_and_instructions_are_not():
    assert [helper.title for helper in show(gemv.gemv).helpers] == ["block_sum", "warp_sum", "load_four"]


def test_its_cuda_twin_is_folded_beneath_it():
    twin = places.folder("kernels") / "gemm" / "fp32" / "s03_tiled.cu"
    if not twin.exists():
        pytest.skip("no twin")
    listing = show(s03_tiled.tiled)
    folded = text(listing._repr_html_().split("<details>")[1])
    for line in twin.read_text(encoding="utf-8").splitlines():
        assert line.strip() in folded


def test_a_learners_own_function_stands_alone():
    def mine(x):
        x[0] = 1

    listing = show(mine)
    assert (listing.cuda_cpp, listing.constants, listing.helpers) == ("", (), ())


def test_a_long_listing_waits_behind_a_line_of_the_pages_own():
    html = show(s03_tiled.tiled, folded="The whole kernel")._repr_html_()
    opened = re.sub("<style>.*?</style>", "", html, flags=re.S)
    assert opened.startswith("<details><summary>The whole kernel</summary>") and opened.endswith("</details>")
    assert opened.count("<details>") == 2  # its twin is folded within
