"""Butterflies of a small transform, held against the definition."""

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.views import butterflies


@cuda.jit
def passes_of_four(x, re, im):
    t = cuda.threadIdx.x
    for k in range(t, 4, 2):
        re[0, k], re[1, k // 2 + k % 2 * 2] = x[k], x[k]
        im[0, k], im[1, k] = 0, 0
    cuda.syncthreads()
    re[2, 2 * t], re[2, 2 * t + 1] = re[1, 2 * t] + re[1, 2 * t + 1], re[1, 2 * t] - re[1, 2 * t + 1]
    im[2, 2 * t], im[2, 2 * t + 1] = 0, 0
    cuda.syncthreads()
    turned_re = re[2, 2] if t == 0 else np.float32(0)
    turned_im = -re[2, 3] if t == 1 else np.float32(0)
    re[3, t], im[3, t] = re[2, t] + turned_re, turned_im
    re[3, t + 2], im[3, t + 2] = re[2, t] - turned_re, -turned_im


def of_a_run(x):
    re, im = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    trace = labkit.simulate(passes_of_four, 1, 2, np.asarray(x, np.float32), re, im)
    return trace.outputs[1] + 1j * trace.outputs[2]


def test_a_step_for_each_butterfly_with_its_values():
    passes = of_a_run([1, 2, 4, 8])
    assert passes[-1] == pytest.approx(np.fft.fft([1, 2, 4, 8]))
    say = butterflies(passes).data["say"]
    assert len(say) == 2 + 4
    assert "**read backwards**" in say[0] and "point 2, binary 10, went to place 01" in say[1]
    assert say[2] == ("Pass 1: place 1 is 4.00. Its **sum** with place 0, 1.00, is 5.00; the **difference** is -3.00.")
    assert say[5] == (
        "Pass 2: place 3, turned clockwise by 90 degrees, is 6.00i. "
        "Its **sum** with place 1, -3.00, is -3.00 + 6.00i; the **difference** is -3.00 - 6.00i."
    )


def test_every_butterfly_is_counted():
    data = butterflies(of_a_run([1, 2, 4, 8])).data
    assert [row[0] for row in data["stats"]["values"]] == [0, 0, 1, 2, 3, 4]
    assert {row[1] for row in data["stats"]["values"]} == {16}
    assert data["places"] == [0, 2, 1, 3]


def test_sixteen_points_have_four_passes(tmp_path):
    passes = np.zeros((6, 16), complex)
    view = butterflies(passes)
    assert len(view.data["say"]) == 2 + 4 * 8
    view.save_png(tmp_path / "sixteen.png", step=20)
    assert (tmp_path / "sixteen.png").stat().st_size > 5000


def test_lines_that_are_no_transform_by_halves_are_refused():
    for shape in ((5, 12), (3, 8), (7, 32)):
        with pytest.raises(ValueError, match=r"log2\(T\) \+ 2 rows of T points"):
            butterflies(np.zeros(shape, complex))
