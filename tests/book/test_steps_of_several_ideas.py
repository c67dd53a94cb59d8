"""What chapters say of steps that bring several ideas at once is what records, runs and the model have."""

from statistics import geometric_mean

import numpy as np
import pytest

import labkit
from labkit import gemm, places, results
from labkit.book.contents import source
from labkit.forecast.timeline import timeline

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")
H100 = "nvidia-h100-80gb-hbm3"


def prose(slug):
    return source(places.PACKAGE.parent / "notebooks", slug).read_text(encoding="utf-8")


def operands(M, N, K):
    return np.zeros((M, K), np.uint16), np.zeros((N, K), np.uint16), np.zeros((M, N), np.uint16)


@pytest.mark.parametrize(
    ("slug", "before", "after", "words"),
    [
        ("feeding-tensor-cores", "ldmatrix", "pipelined", "Together they gain {}x at 4,096"),
        ("hopper-gemm", "pipelined", "copy_engine", "{}x faster than `pipelined` at 4,096"),
        ("hopper-gemm", "wgmma", "persistent", "Together they gain {}x at 4,096"),
    ],
)
def test_gains_are_those_of_the_record(slug, before, after, words):
    rows = results.load("gemm_tensor", H100).select(dtype="bfloat16", problem="4096x4096x4096", baseline="cuBLAS")
    tflops = {row["step"]: row["tflops"] for row in rows}
    assert words.format(f"{tflops[after] / tflops[before]:.2f}") in prose(slug)


def test_loads_that_steps_save_are_counted():
    slugs = "ldmatrix", "pipelined", "copy_engine"
    old, ring, tma = (gemm.step("tensor", slug).simulate(*operands(256, 256, 128)).traces[0].counters for slug in slugs)
    assert ring.global_load_sectors == 3 / 4 * old.global_load_sectors, "a quarter of the sectors"
    assert ring.shared_load_wavefronts == 2 / 3 * old.shared_load_wavefronts, "a third of the wavefronts"
    assert tma.global_load_sectors == ring.global_load_sectors
    assert tma.shared_load_wavefronts == ring.shared_load_wavefronts


def cycles(K):
    """Cycles of three tiles of C in the model: by `wgmma`, and by `persistent` with three blocks and with one."""
    A, B, C = operands(384, 256, K)
    blocks = [(n, 0, 0) for n in range(3)]
    three = gemm.step("tensor", "wgmma").simulate(A, B, C, record=blocks).traces[0]
    (launch,) = gemm.step("tensor", "persistent").launches(A, B, C)
    others = [
        labkit.simulate(
            launch.kernel, grid, launch.block, *launch.arguments, shared_bytes=launch.shared_bytes, record=blocks[:grid]
        )
        for grid in (3, 1)
    ]
    return [timeline(trace).cycles for trace in (three, *others)]


def test_in_the_model_only_persistence_gains():
    (of_wgmma, in_three, in_one), (longer, _, longer_in_one) = cycles(320), cycles(512)
    assert in_three == pytest.approx(of_wgmma)
    gain = of_wgmma - in_one
    assert longer - longer_in_one == pytest.approx(gain, rel=0.05)  # whatever K is
    at_4096 = longer + (longer - of_wgmma) / (512 - 320) * (4096 - 512)
    assert f"At K = 4,096 the model's gain is {gain / at_4096:.0%}" in prose("hopper-gemm")


def test_means_of_shapes_are_those_of_the_record():
    rows = [row for row in results.load("gemm_shapes", H100).select(step="multiply")]
    rows = [row for row in rows if len({row["M"], row["N"], row["K"]}) > 1]
    layers = [row for row in rows if row["N"] in (4096, 11008, 14336)]
    few, *others = (
        geometric_mean([row["ratio"] for row in layers if row["M"] in of])
        for of in ((1, 8, 16), (64,), (256,), (1024,), (4096,))
    )
    text = " ".join(prose("hopper-gemm").split())
    words = f"{few:.2f}x cuBLAS's speed for 1 to 16 rows, {{:.2f}}x for 64, {{:.2f}}x for 256, {{:.2f}}x for 1,024"
    assert f"{words}, and {{:.2f}}x for 4,096".format(*others) in text
    (slowest,) = (row for row in rows if row["ratio"] == min(other["ratio"] for other in rows))
    assert (slowest["M"], slowest["N"], slowest["K"], f"{slowest['ratio']:.2f}") == (256, 11008, 11008, "0.91")
    twice = results.load("gemm_shapes", H100).select(step="multiply", problem="4096x4096x4096")
    assert "with {:.2f}x and {:.2f}x.".format(*(row["ratio"] for row in twice)) in text
