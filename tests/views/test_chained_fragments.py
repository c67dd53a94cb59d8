"""Accumulators and left operand of a run that chains two products, which gives the right result."""

import numpy as np
import pytest

import labkit
from labkit import cuda, formats, ptx
from labkit.views import chained_fragments
from labkit.views.base import unpack

FORMAT = formats.BF16.number


@cuda.jit
def two_products(Q, K, V, S, P, O, swap):
    s = cuda.local.array((2, 4), np.float32)
    o = cuda.local.array(4, np.float32)
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    for n in range(4):
        s[0, n], s[1, n], o[n] = 0, 0, 0
    q = Q[g, t], Q[g + 8, t], Q[g, t + 4], Q[g + 8, t + 4]
    ptx.mma(s, (0, 0), q, (K[g, t], K[g, t + 4]), FORMAT)
    ptx.mma(s, (1, 0), q, (K[g + 8, t], K[g + 8, t + 4]), FORMAT)
    p0, p1 = ptx.pack2(s[0, 0], s[0, 1], FORMAT), ptx.pack2(s[0, 2], s[0, 3], FORMAT)
    p2, p3 = ptx.pack2(s[1, 0], s[1, 1], FORMAT), ptx.pack2(s[1, 2], s[1, 3], FORMAT)
    ptx.mma(o, 0, (p0, p1, p2, p3), (V[g, t], V[g, t + 4]), FORMAT)
    for n in range(2):
        S[g, 8 * n + 2 * t], S[g, 8 * n + 2 * t + 1] = s[n, 0], s[n, 1]
        S[g + 8, 8 * n + 2 * t], S[g + 8, 8 * n + 2 * t + 1] = s[n, 2], s[n, 3]
    other = t ^ swap
    P[g, other], P[g + 8, other], P[g, other + 4], P[g + 8, other + 4] = p0, p1, p2, p3
    O[g, 2 * t], O[g, 2 * t + 1], O[g + 8, 2 * t], O[g + 8, 2 * t + 1] = o[0], o[1], o[2], o[3]


def run(swap=0):
    rng = np.random.default_rng(0)
    Q, K, V = (rng.integers(-2, 3, (rows, 16)).astype(float) for rows in (16, 16, 8))
    words = (formats.BF16.encode(X).view(np.uint32) for X in (Q, K, V))
    outputs = np.zeros((16, 16), np.float32), np.zeros((16, 8), np.uint32), np.zeros((16, 8), np.float32)
    return labkit.simulate(two_products, 1, 32, *words, *outputs, np.int32(swap)), Q @ K.T, Q @ K.T @ V.T


@pytest.fixture(scope="module")
def view():
    trace, S, O = run()
    assert (trace.outputs[3] == S).all() and (trace.outputs[5] == O).all()  # so the registers were the operand
    return chained_fragments(trace)


def test_each_lane_holds_what_the_next_product_takes_from_it(view):
    sums, words = (unpack(view.data[name]).astype(int) for name in ("sums", "words"))
    needed = np.concatenate([2 * words, 2 * words + 1])
    assert (np.sort(sums, axis=0) == np.sort(needed, axis=0)).all()
    assert sorted(sums.ravel()) == list(range(256))
    assert all(say.endswith("**It already has all eight of them.**") for say in view.data["say"])


def test_the_sentence_and_the_table_name_the_elements(view):
    assert view.sentence.startswith("Lane 6 holds S[1, 4], S[9, 4], S[1, 12] and S[9, 12], each with its right")
    assert view.data["table"]["rows"][6][-4:] == ["P[1, 4:6]", "P[9, 4:6]", "P[1, 12:14]", "P[9, 12:14]"]


def test_an_operand_in_other_places_is_told():
    assert chained_fragments(run(swap=1)[0]).sentence.endswith("It does not hold these elements.")


def test_a_still_picture_and_what_is_refused(view, tmp_path):
    view.save_png(tmp_path / "chained.png", step=31)
    assert (tmp_path / "chained.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="this run stores 4 and 4"):
        chained_fragments(run()[0], S="O")
