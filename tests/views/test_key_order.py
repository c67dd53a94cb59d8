"""The keys that a lane holds and needs, held against the order in which the package stores V."""

import numpy as np
import pytest

import labkit
from labkit import cuda, ptx
from labkit.attention.fp8.problem import ORDER
from labkit.views import key_order

FORMAT = ptx.E4M3


@cuda.jit
def one_mma(A, B, C):
    acc = cuda.local.array(4, np.float32)
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    for n in range(4):
        acc[n] = 0
    words_of_a = A[g, t], A[g + 8, t], A[g, t + 4], A[g + 8, t + 4]
    ptx.mma(acc, 0, words_of_a, (B[g, t], B[g, t + 4]), FORMAT)
    C[g, 2 * t], C[g, 2 * t + 1] = acc[0], acc[1]
    C[g + 8, 2 * t], C[g + 8, 2 * t + 1] = acc[2], acc[3]


def run():
    A, B = (np.zeros((rows, 8), np.uint32) for rows in (16, 8))
    return labkit.simulate(one_mma, 1, 32, A, B, np.zeros((16, 8), np.float32))


@pytest.fixture(scope="module")
def view():
    return key_order(run(), ORDER)


def test_in_the_order_of_v_each_lane_needs_the_keys_that_it_holds(view):
    for held, places in zip(view.data["held"], view.data["needed"], strict=True):
        assert sorted(ORDER[places]) == held
    for name in ("held", "needed"):
        assert sorted(np.ravel(view.data[name])) == list(range(16))
    assert all(say.endswith("In V's own order it has **4 of 4**.") for say in view.data["say"])


def test_in_memory_order_it_has_half_of_them_or_none(view):
    assert [say.split("it has **")[1][0] for say in view.data["say"]] == ["2", "0", "0", "2"]
    assert view.sentence == (
        "Lane 2 holds the scores of keys 4, 5, 12 and 13. With V in memory order it needs 8 to 11: it has 0 of 4. "
        "In V's own order it has 4 of 4."
    )


def test_a_still_picture_and_what_is_refused(view, tmp_path):
    view.save_png(tmp_path / "key_order.png", step=1)
    assert (tmp_path / "key_order.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="give each once"):
        key_order(run(), [0] * 16)
    with pytest.raises(ValueError, match="does not take 4 keys"):
        key_order(run(), ORDER, A="C")
