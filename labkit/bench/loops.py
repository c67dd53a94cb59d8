"""`labkit bench loops`: the book's loops on one core compared with NumPy on all cores of this CPU.

A loop does the same work for every row of A. It is timed on the first `timed_rows` rows, from which the time of the
whole is estimated; Python is timed on a part of B's columns, too.
"""

import numpy as np
from numba import njit

from labkit import gemm, loops, specialise
from labkit.bench import _record
from labkit.calls import timing
from labkit.loops.orders import ORDERS
from labkit.results.computed import add_computed

SIZE = 4096
TIMED_ROWS = {"python": 1, "compiled": 4, "rows": 128, "blocked": 512}
ORDER_SIZE = 512  # side of the matrices for the six loop orders
TILES = (8, 16, 32, 64, 128, 256, 512, 1024)
TILE_ROWS = 256  # rows of A that are timed for each tile
WORKING_SETS_KB = tuple(2**power for power in range(4, 19))
CHASED_LOADS = 500_000  # dependent loads that are timed per working set
TRACED_ACCESSES = 8_000_000  # at most, of a loop whose cache misses are traced
COLUMNS = {"step": "", "problem": "", "time_ms": ",.1f", "gflops": ".3f", "timed_rows": "d"}
COLUMNS |= {"baseline": "", "ratio": ".4f", "error": ".1e"}


def main(record=False, out=None) -> None:
    cpu = _record.cpu_name()
    steps = time_steps()
    _record.print_table(f"C = A @ B in float32 on {cpu}", steps, COLUMNS)
    orders = time_orders()
    _record.print_table("The six orders", orders, COLUMNS)
    tiles = time_tiles()
    _record.print_table("Tiles", tiles, {"tile": "d", **COLUMNS})
    latencies = time_latencies()
    _record.print_table("One load after the other", latencies, {"working_set_kb": ",d", "time_ns": ".2f"})
    _record.report_progress(f"tracing {TRACED_ACCESSES:,} accesses of each loop")
    misses = trace_misses()
    columns = {"step": "", "problem": "", "cpu": "", "array": "", "l1_miss_rate": ".4f", "dram_rate": ".4f"}
    _record.print_table("Accesses that miss, traced", misses, columns)
    _record.store_if_requested("loops", [*steps, *orders, *tiles, *latencies, *misses], cpu, record, out)


def time_steps() -> list[dict]:
    """Time the ladder at SIZE, and NumPy."""
    problem = gemm.Problem(SIZE, SIZE, SIZE)
    A, B, C = problem.operands()
    _record.report_progress("timing NumPy")
    baseline_ms = timing.host_time_ms(lambda: np.matmul(A, B, out=C), repeats=5)
    rows = []
    for step in loops.ladder():
        _record.report_progress(f"timing {step.slug}")
        num_rows = TIMED_ROWS[step.slug]
        columns = SIZE // 16 if step.slug == "python" else SIZE
        output = np.full((num_rows, columns), np.nan, np.float32)
        arguments = A[:num_rows], np.ascontiguousarray(B[:, :columns]), output
        time_ms = timing.host_time_ms(lambda step=step, arguments=arguments: step.launch(*arguments), repeats=3)
        row = _row(step.slug, problem, time_ms * (SIZE / num_rows) * (SIZE / columns), arguments)
        rows.append(_with_baseline(baseline_ms, {**row, "timed_rows": num_rows}))
    _record.report_progress("timing python with lists")
    columns = SIZE // 16
    lists = A[:1].tolist(), B[:, :columns].tolist(), [[0.0] * columns]
    time_ms = timing.host_time_ms(lambda: _with_lists(*lists), repeats=3)
    row = _row("python with lists", problem, time_ms * SIZE * (SIZE / columns))
    return [*rows, _with_baseline(baseline_ms, {**row, "timed_rows": 1})]


def _with_lists(A, B, C):
    """Run the Python loop on lists of lists, whose elements Python reads faster than those of an array."""
    for i in range(len(A)):
        for j in range(len(B[0])):
            total = 0.0
            for k in range(len(B)):
                total += A[i][k] * B[k][j]
            C[i][j] = total


def time_orders() -> list[dict]:
    """Time the six orders on whole matrices of a smaller size."""
    problem = gemm.Problem(ORDER_SIZE, ORDER_SIZE, ORDER_SIZE)
    A, B, C = problem.operands()
    rows = []
    for name, loop in ORDERS.items():
        _record.report_progress(f"timing {name}")
        C[:] = 0
        loop(A, B, C)
        error = _error(A, B, C)
        time_ms = timing.host_time_ms(lambda loop=loop: loop(A, B, C), repeats=3)
        rows.append({**_row(name, problem, time_ms), "error": error, "timed_rows": ORDER_SIZE})
    return rows


def time_tiles() -> list[dict]:
    """Time the blocked loop with other tiles."""
    problem = gemm.Problem(SIZE, SIZE, SIZE)
    A, B, C = problem.operands()
    A, C = A[:TILE_ROWS], C[:TILE_ROWS]
    rows = []
    for tile in TILES:
        _record.report_progress(f"timing tiles of {tile}")
        loop = njit(specialise(loops.step("blocked").kernel.py_func, TILE=tile))
        time_ms = timing.host_time_ms(lambda loop=loop: loop(A, B, C), repeats=3)
        row = _row("blocked", problem, time_ms * SIZE / TILE_ROWS, (A, B, C))
        rows.append({**row, "tile": tile, "timed_rows": TILE_ROWS})
    return rows


def time_latencies() -> list[dict]:
    """Time dependent loads in ns, whose results are the next addresses, for each working set.

    The walk visits the lines of its working set in a random order, which no prefetcher guesses. Large sets
    pay for missing page translations too.
    """
    rng = np.random.default_rng(0)
    rows = []
    for kb in WORKING_SETS_KB:
        _record.report_progress(f"timing loads in {kb:,} KB")
        order = rng.permutation(kb * 1024 // 64) * 8
        chain = np.zeros(kb * 128, np.int64)
        chain[order] = np.roll(order, -1)
        time_ms = timing.host_time_ms(lambda chain=chain: _follow_chain(chain, CHASED_LOADS), repeats=3)
        time_ns = time_ms / CHASED_LOADS * 1e6
        rows.append({"operation": "loops", "step": "pointer chase", "working_set_kb": kb, "time_ns": time_ns})
    return rows


@njit
def _follow_chain(next_index, steps):
    index = 0
    for _ in range(steps):
        index = next_index[index]
    return index


def trace_misses() -> list[dict]:
    """Trace the miss rates of each array over the first accesses, at SIZE and one column more."""
    rows = []
    for columns in (SIZE, SIZE + 1):
        problem = gemm.Problem(8, columns, SIZE)
        for slug in ("compiled", "rows"):
            traced = loops.trace(loops.step(slug).kernel, *problem.operands(), most_accesses=TRACED_ACCESSES)
            for name in "ABC":
                served = traced.served(name)  # accesses by the level that served them, from L1 to DRAM
                row = {"operation": "loops", "step": slug, "problem": f"{SIZE}x{columns}x{SIZE}", "cpu": traced.cpu}
                row |= {"array": name, "traced_accesses": sum(served), "l1_miss_rate": traced.miss_rate(name)}
                rows.append(row | {"dram_rate": served[-1] / max(sum(served), 1)})
    return rows


def _row(slug, problem, time_ms, arrays=None) -> dict:
    row = {"operation": "loops", "step": slug, "problem": str(problem), "dtype": "float32"}
    row |= {"time_ms": time_ms, "gflops": problem.flops / time_ms / 1e6}
    return row | {"error": _error(*arrays)} if arrays else row


def _with_baseline(baseline_ms, row):
    return add_computed({**row, "baseline": "NumPy", "baseline_time_ms": baseline_ms})


def _error(A, B, C) -> float:
    """Return the relative error against float64."""
    expected = gemm.oracle(A, B)
    return float(np.linalg.norm(C - expected) / np.linalg.norm(expected))
