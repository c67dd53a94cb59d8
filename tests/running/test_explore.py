"""`labkit run --explore`: each launch in several orders of its warps and blocks."""

import json
from textwrap import dedent

import numpy as np
import pytest
from programs import HEADER, run

from labkit import cuda, simulate
from labkit.simulator.explorer.orders import simulate_in_orders
from labkit.simulator.warp_order import ORDERS, WarpOrder


def explore(tmp_path, text, *options):
    return run(tmp_path, HEADER + dedent(text), options=("--explore", *options))


def test_a_result_that_depends_on_the_order_is_an_error_and_that_of_the_first_order_stays(tmp_path):
    program = """
    @cuda.jit
    def smooth(x):
        i = cuda.grid(1)
        if 0 < i < x.size - 1:
            x[i] = x[i - 1] + x[i + 1]

    x = np.arange(256)
    smooth[2, 128](x)
    print((x[1:-1] == 2 * np.arange(1, 255)).all())
    """
    plain, explored = run(tmp_path, HEADER + dedent(program)), explore(tmp_path, program, "--json", "r.json")
    assert plain.stdout == explored.stdout == "True\n"  # all warps in step read before any writes
    assert "(order)" not in plain.stderr
    assert explored.returncode == 1
    report = " ".join(explored.stderr.split())
    assert "program.py:9: error (order) in kernel smooth" in report
    assert "x[32] is 64 with all warps in step" in report
    assert "in 4 of 4 other orders" in report
    assert "each launch ran in up to 5 orders" in report
    findings = json.loads((tmp_path / "r.json").read_text())["findings"]
    assert [(f["kind"], f["array"], f["index"]) for f in findings if f["severity"] == "error"] == [
        ("race", "x", [128]),
        ("order", "x", [32]),
    ]


def test_right_kernels_do_not_depend_on_the_order(tmp_path):
    program = """
    @cuda.jit
    def reverse(x):
        s = cuda.shared.array(128, "float32")
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        x[cuda.grid(1)] = s[127 - t]

    @cuda.jit
    def total(x, out):
        cuda.atomic.add(out, 0, x[cuda.grid(1)])

    @cuda.jit
    def ticket(x, out, count):
        s = cuda.shared.array(1, "int32")
        if cuda.threadIdx.x == 0:
            cuda.atomic.add(out, 0, x[cuda.grid(1)])
            cuda.threadfence()
            s[0] = cuda.atomic.add(count, 0, 1)
        cuda.syncthreads()
        if s[0] == cuda.gridDim.x - 1 and cuda.threadIdx.x == 0:
            out[1] = cuda.atomic.add(out, 0, np.float32(0))

    x = np.random.default_rng(0).random(1024).astype(np.float32)
    reverse[8, 128](x)
    total[8, 128](x, np.zeros(1, np.float32))
    ticket[8, 128](x, np.zeros(2, np.float32), np.zeros(1, np.int32))
    """
    result = explore(tmp_path, program)
    assert result.returncode == 0, result.stderr
    assert "labkit: 0 errors and 0 pieces of advice in 3 launches of 3 kernels" in result.stderr


def test_an_order_that_an_atomic_decides_is_advice(tmp_path):
    program = """
    @cuda.jit
    def compact(x, out, count):
        i = cuda.grid(1)
        if x[i] > 30:
            out[cuda.atomic.add(count, 0, 1)] = x[i]

    compact[2, 64](np.arange(128), np.zeros(128, np.int64), np.zeros(1, np.int32))
    """
    result = explore(tmp_path, program)
    assert result.returncode == 0
    assert "advice (order) in kernel compact" in result.stderr
    assert "out[0] is 31 with all warps in step" in " ".join(result.stderr.split())


@cuda.jit
def outside_in_other_orders(x):
    s = cuda.shared.array(64, "int32")
    t = cuda.threadIdx.x
    s[t] = 64
    cuda.syncthreads()
    s[t] = 0
    x[t + s[63 - t]] = 1  # in step, all is 0 before any is read


@cuda.jit
def hangs_if_block_1_is_first(flag, out):
    if cuda.blockIdx.x == 1:
        out[0] = 1
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
    elif out[0] == 0:
        cuda.atomic.add(flag, 0, 1)


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "arguments", "kind"),
    [
        (outside_in_other_orders, 1, 64, (np.zeros(64, np.int32),), "bounds"),
        (hangs_if_block_1_is_first, 2, 32, (np.zeros(1, np.int32), np.zeros(1, np.int32)), "deadlock"),
    ],
)
def test_errors_that_only_other_orders_show_are_told_once(kernel, grid, block, arguments, kind):
    in_step, trace = (f(kernel, grid, block, *arguments) for f in (simulate, simulate_in_orders))
    assert kind not in [f.kind for f in in_step.findings]
    assert [f.kind for f in trace.errors].count(kind) == 1
    assert len(trace.errors) == len({(f.kind, f.array, f.line, f.other_line) for f in trace.errors})
    assert all(map(np.array_equal, trace.outputs, in_step.outputs))


def test_a_long_loop_may_take_longer_in_other_orders():
    @cuda.jit
    def count(x, steps):
        i = cuda.grid(1)
        for _ in range(steps):
            x[i] += 1

    trace = simulate_in_orders(count, 16, 64, np.zeros(1024), 3000)
    assert not trace.errors


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.name)
@pytest.mark.parametrize(("blocks", "warps", "sets"), [(4, 2, 8), (100, 4, 32), (8, 32, 32)])
def test_each_warp_of_a_chunk_has_its_turn(order, blocks, warps, sets):
    turns = order.rank_warps(list(range(blocks)), warps, blocks)
    assert turns.shape == (blocks, warps)
    assert len(np.unique(turns)) == sets
    if order == ORDERS[0]:
        assert (np.diff(turns.ravel()[:: max(1, warps)]) >= 0).all()
    of_large_grid = order.rank_warps(list(range(blocks)), warps, 1000 * blocks)
    assert len(np.unique(of_large_grid)) == warps


def test_chunks_follow_in_the_order():
    waves = [[[0], [1]], [[2], [3]]]
    assert WarpOrder("").arrange(waves) == [[[0], [1], [2], [3]]]
    assert WarpOrder("", backwards=True).arrange(waves) == [[[3], [2], [1], [0]]]
    assert sorted(WarpOrder("", seed=0).arrange(waves)[0]) == [[0], [1], [2], [3]]
