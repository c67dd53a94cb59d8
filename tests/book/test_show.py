import pytest

from labkit import places
from labkit.book import show
from labkit.gemm.fp32 import s03_tiled


def test_a_kernel_is_shown_as_it_stands_in_its_file():
    listing = show(s03_tiled.tiled)
    assert listing.python in (places.PACKAGE / "gemm" / "fp32" / "s03_tiled.py").read_text(encoding="utf-8")
    assert listing.python.startswith("@cuda.jit\ndef tiled(")


def test_its_cuda_twin_is_folded_beneath_it():
    twin = places.folder("kernels") / "gemm" / "fp32" / "s03_tiled.cu"
    if not twin.exists():
        pytest.skip("no twin")
    listing = show(s03_tiled.tiled)
    folded = listing._repr_markdown_().split("<details>")[1]
    assert twin.read_text(encoding="utf-8").strip() in folded


def test_a_learners_own_function_has_no_twin():
    def mine(x):
        x[0] = 1

    assert show(mine).cuda_cpp == ""
