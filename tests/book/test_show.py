import re
from html import unescape

import pytest

from labkit import places
from labkit.book import show
from labkit.gemm.fp32 import s03_tiled

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
            number, code = re.fullmatch(r" *(\d+)(.*)", line).groups()
            assert code.strip() == lines[int(number) - 1].strip()


def test_its_cuda_twin_is_folded_beneath_it():
    twin = places.folder("kernels") / "gemm" / "fp32" / "s03_tiled.cu"
    if not twin.exists():
        pytest.skip("no twin")
    listing = show(s03_tiled.tiled)
    folded = text(listing._repr_html_().split("<details>")[1])
    for line in twin.read_text(encoding="utf-8").splitlines():
        assert line.strip() in folded


def test_a_learners_own_function_has_no_twin():
    def mine(x):
        x[0] = 1

    assert show(mine).cuda_cpp == ""
