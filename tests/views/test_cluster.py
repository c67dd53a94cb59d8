"""A cluster step by step, held against batch norms whose statistics NumPy computes."""

import numpy as np
import pytest

import labkit
from labkit import cuda, norm
from labkit.views import cluster
from labkit.views.base import unpack

IMAGES = norm.BatchForward(N=8, C=3, H=4, W=8, relu=False)
CLUSTER = [(block,) for block in range(8)]


@pytest.fixture(scope="module")
def run():
    x, weight, bias, *others = IMAGES.operands()
    x += np.arange(8, dtype=np.float32)[:, None, None, None]  # images of different brightness
    step = norm.ladder("batch").step("one_read")
    return step.simulate(x, weight * 0 + 1, bias * 0, *others, record=CLUSTER)


@pytest.fixture(scope="module")
def view(run):
    return cluster(run.traces[0])


def test_a_block_has_a_piece_of_the_channel_which_it_reads_once(run, view):
    x, pieces = run.operands[0], unpack(view.data["before"])
    assert pieces.shape == (8, 32) and np.array_equal(pieces, x[:, 0].reshape(8, 32))
    assert "**256 values of `x` are read, each once.**" in view.data["say"][1]
    assert [row[0] for row in view.data["stats"]["values"]] == ["0"] + ["256"] * 12


def test_means_of_pieces_differ_and_the_merged_one_is_the_kernel_s(run, view):
    channel = run.operands[0][:, 0].astype(float)
    assert view.data["means"] == pytest.approx(channel.mean((1, 2)), abs=1e-3)
    assert view.data["mean"] == pytest.approx(run.operands[4][0], abs=1e-3)
    assert view.data["spread"] == pytest.approx(run.operands[5][0] ** 0.5, abs=1e-3)
    assert f"**{channel.mean():.2f}**" in view.data["say"][11]


def test_every_block_sends_four_numbers_to_every_other_block(view):
    assert view.data["say"][4].startswith(
        "Exchange, 2 of 8: every block writes its 4 numbers into the shared memory of"
    )
    sent = [row[1] for row in view.data["stats"]["values"]]
    assert sent == ["0"] * 3 + [str(28 * (target + 1)) for target in range(8)] + ["224"] * 2


def test_what_is_written_is_the_normalised_piece(run, view):
    channel = run.operands[0][:, 0].astype(float)
    expected = (channel - channel.mean()) / np.sqrt(channel.var() + IMAGES.eps)
    assert unpack(view.data["after"]) == pytest.approx(expected.reshape(8, 32), abs=1e-5)
    assert [row[2] for row in view.data["stats"]["values"]] == ["0"] * 12 + ["256"]


@cuda.jit
def alone(x, y):
    moments = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    moments[t] = x[t]
    y[t] = moments[t]


def test_a_still_picture_and_what_is_refused(run, view, tmp_path):
    for step in (0, 2, 11, 12):
        view.save_png(tmp_path / "cluster.svg", step=step)
        assert (tmp_path / "cluster.svg").stat().st_size > 5000
    with pytest.raises(TypeError, match="takes a trace"):
        cluster(run)
    x = np.ones(32, np.float32)
    with pytest.raises(ValueError, match="record all blocks of one cluster"):
        cluster(labkit.simulate(alone, 1, 32, x, x * 0))
    large = norm.BatchForward(N=8, C=1, H=16, W=16)
    step = norm.ladder("batch").step("one_read")
    with pytest.raises(ValueError, match="256, 256.* choose a smaller problem"):
        cluster(step.simulate(*large.operands(), record=CLUSTER).traces[0])
