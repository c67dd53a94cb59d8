"""Figures that the chapter on register tiles takes from the docstrings of its steps."""

import re

import pytest

from labkit import gemm, places
from labkit.book.contents import source

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")


@pytest.fixture(scope="module")
def chapter():
    return source(places.PACKAGE.parent / "notebooks", "register-tiles").read_text(encoding="utf-8")


def docstring(slug):
    return gemm.step("fp32", slug).module.__doc__


def test_versions_of_the_tuned_step(chapter):
    tried = chapter[chapter.index("tried = {") : chapter.index("}\nat =")]
    ratios = re.findall(r": (0\.\d\d),", tried)
    told = re.findall(r"0\.\d\d", docstring("tuned").replace("0.94 at 8192", ""))
    assert sorted(ratios) == sorted(told) and len(told) == 10


def test_shares_of_multiply_adds(chapter):
    (line,) = re.findall(r"^multiplying = .*$", chapter, re.M)
    steps = ("register_tile", "vectorised", "swizzle", "double_buffering", "warp_tiles", "tuned")
    told = [re.findall(r"(\d+%)[^%]*\(sm_90\)", docstring(slug)) for slug in steps]
    assert [[share] for share in re.findall(r"\d+%", line)] == told
