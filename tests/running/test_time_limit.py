"""`labkit run --time-limit`, and the progress of launches that take long."""

import io
import json
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from programs import HEADER, run

from labkit import cuda, simulate
from labkit.running.progress import PREPARING, Progress, describe
from labkit.simulator import limits
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.explorer.orders import simulate_in_orders
from labkit.simulator.in_place import simulate_in_place
from labkit.simulator.pace import Pace

PROGRAM = (
    HEADER
    + """\
@cuda.jit
def double(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] + x[i]

x = np.arange(100_000)
out = cuda.device_array_like(x)
double[782, 128](x, out)
print((out.copy_to_host() == x + x).all())
"""
)


@cuda.jit
def shift(x, out):
    s = cuda.shared.array(64, "int64")
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    out[cuda.grid(1)] = s[63 - t]


@cuda.jit
def long_loop(x, steps):
    i = cuda.grid(1)
    for _ in range(steps):
        x[i] += 1


def over_after(checks):
    """Return a pace whose time limit has passed after it was asked so often."""

    class Counted(Pace):
        asked = 0

        @property
        def is_over(self):
            self.asked += 1
            return self.asked > checks

    return Counted(1.5)


def test_beyond_the_limit_results_are_whole_and_a_sentence_says_what_was_checked(tmp_path):
    result = run(tmp_path, PROGRAM, options=("--time-limit", "0", "--json", "r.json"))
    assert result.stdout == "True\n"
    assert result.returncode == 0
    report = " ".join(result.stderr.split())
    assert "the time limit of 0 s ended the checks after 0 of 782 blocks" in report
    assert "1 launch checked only in part, by the time limit" in report
    (finding,) = json.loads((tmp_path / "r.json").read_text())["findings"]
    assert (finding["kind"], finding["severity"]) == ("time-limit", "advice")


def test_within_the_limit_all_is_checked(tmp_path):
    result = run(tmp_path, PROGRAM, options=("--time-limit", "1000"))
    assert result.stdout == "True\n"
    assert "time limit" not in result.stderr


def test_blocks_before_the_limit_are_checked_and_counted():
    x = np.arange(64 * 1024)
    trace = simulate(shift, 1024, 64, x, np.zeros_like(x), pace=over_after(2))
    assert "race" in {f.kind for f in trace.errors}
    (advice,) = [f for f in trace.advice if f.kind == "time-limit"]
    assert "after 512 of 1,024 blocks" in advice.message
    assert trace.counters.global_loads == 512 * 64
    unchecked = simulate(shift, 1024, 64, x, np.zeros_like(x), pace=over_after(0))
    assert not unchecked.errors
    assert (unchecked.outputs[1] == trace.outputs[1]).all()


def test_a_loop_ends_its_checks_too():
    trace = simulate(long_loop, 1, 32, np.zeros(32), 100, pace=over_after(50))
    assert (trace.outputs[0] == 100).all()
    assert 32 <= trace.counters.global_loads < 32 * 100


def test_with_a_limit_a_loop_may_be_longer():
    steps = 100_000
    with pytest.raises(KernelError, match="the kernel was stopped here"):
        simulate(long_loop, 1, 1, np.zeros(1), steps)
    trace = simulate(long_loop, 1, 1, np.zeros(1), steps, pace=Pace(0))
    assert trace.outputs[0][0] == steps


@pytest.mark.parametrize(
    ("pace", "cure"),
    [
        (Pace(None, "--limit"), "simulate a smaller problem, or pass `--limit 60`: launches may then do 20 times as"),
        (Pace(5, "--limit"), "simulate a smaller problem"),
        (None, "simulate a smaller problem, or a sample of its blocks, `labkit.simulate(..., sample=64)`"),
    ],
)
def test_too_much_work_gets_a_cure_that_its_user_has(monkeypatch, pace, cure):
    monkeypatch.setattr(limits, "MAX_WORK", 300)
    with pytest.raises(KernelError) as stopped:
        simulate(long_loop, 4096, 1024, np.zeros(4096 * 1024), 1, pace=pace)
    assert "before all of its blocks had run; " in str(stopped.value)
    assert cure in str(stopped.value) and ("sample" in str(stopped.value)) == (pace is None)
    monkeypatch.setattr(limits, "MAX_LANES", 1000)
    with pytest.raises(LaunchError) as refused:
        simulate(long_loop, 2, 1024, np.zeros(2048), 1, pace=pace)
    assert ("sample" in str(refused.value)) == (pace is None)


def test_a_limit_lets_loops_be_longer_in_all_orders(monkeypatch):
    monkeypatch.setattr(limits, "MAX_CHUNK_WORK", 100)
    trace = simulate_in_orders(long_loop, 4, 32, np.zeros(128), 400, pace=Pace(1000))
    assert not trace.errors


def test_errors_that_could_do_harm_are_found_without_checks():
    trace = simulate(shift, 2, 64, np.zeros(64, np.int64), np.zeros(128, np.int64), pace=over_after(0))
    assert [f.kind for f in trace.errors] == ["bounds"]


def test_elements_stored_without_checks_count_as_written():
    out = cuda.device_array(64, np.int64)
    simulate_in_place(shift, 1, 64, np.arange(64), out, pace=over_after(0))
    assert (out.copy_to_host() == np.arange(64)[::-1]).sum() >= 32


def test_further_orders_end_with_the_time(tmp_path):
    result = run(tmp_path, PROGRAM, options=("--time-limit", "0", "--explore"))
    assert "ended the search after 1 of 5 orders" in " ".join(result.stderr.split())


def test_a_time_limit_is_no_negative_number(tmp_path):
    result = run(tmp_path, PROGRAM, options=("--time-limit", "-1"))
    assert (result.returncode, result.stdout) == (2, "")


@pytest.fixture
def ago(monkeypatch):
    """Return a pace that began so many seconds ago."""

    def make(seconds, blocks=0, done=0):
        monkeypatch.setattr(time, "perf_counter", lambda: 100 - seconds)
        pace = Pace()
        pace.begin(blocks)
        monkeypatch.setattr(time, "perf_counter", lambda: 100)
        pace.done = done
        return pace

    return make


def test_a_line_says_how_many_blocks_are_done_and_what_time_is_left(ago):
    assert describe("double", ago(4, 65_536, 16_384)) == "labkit: double, 16,384 of 65,536 blocks, 4 s, about 12 s left"
    assert describe("double", ago(4, 8, 0)) == "labkit: double, 0 of 8 blocks, 4 s"
    assert describe("double", ago(4)) == "labkit: double, placing its arrays, 4 s"
    pace = ago(10, 100, 50)
    pace.run, pace.runs = 2, 5
    line = describe("k" * 100, pace)
    assert len(line) == 79
    assert line.endswith("..., order 2 of 5, 50 of 100 blocks, 10 s, about 10 s left")


def test_time_that_is_left_out_counts_neither_for_the_limit_nor_for_the_rest(ago):
    pace = ago(10, 100, 50)
    pace.time_limit_s = 8
    assert pace.is_over
    pace.leave_out(5)
    assert not pace.is_over
    assert pace.left_s is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


def event(module):
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


def show_at(progress, monkeypatch, *seconds):
    for now in seconds:
        monkeypatch.setattr(time, "perf_counter", lambda now=now: now)
        progress._show()
    return progress.stream.getvalue()


def test_a_terminal_has_one_line_that_is_rewritten_and_erased(ago, monkeypatch):
    progress = Progress(Terminal())
    with progress.launch("k", ago(0, 10, 5)):
        assert show_at(progress, monkeypatch, 100, 100.9) == ""
        show_at(progress, monkeypatch, 101, 101.2)
    shown = progress.stream.getvalue()
    assert "\n" not in shown
    assert [len(part) for part in shown.split("\r")] == [0, 79, 79, 79, 0]
    assert not shown.split("\r")[-2].strip()


def test_elsewhere_a_line_comes_every_ten_seconds(ago, monkeypatch):
    progress = Progress(io.StringIO())
    with progress.launch("k", ago(0, 10, 5)):
        assert show_at(progress, monkeypatch, 101, 105, 110, 111, 115, 120).count("\n") == 2


def test_what_is_left_is_told_soon_after_it_is_known(ago, monkeypatch):
    progress = Progress(io.StringIO())
    pace = ago(0, 10, 0)
    with progress.launch("k", pace):
        assert show_at(progress, monkeypatch, 101, 101.5, 103) == "labkit: k, 0 of 10 blocks, 1 s\n"
        pace.done = 5
        show_at(progress, monkeypatch, 104, 105, 106)
    assert progress.stream.getvalue().splitlines()[1:] == ["labkit: k, 5 of 10 blocks, 4 s, about 4 s left"]


def test_the_first_run_says_once_that_it_prepares_the_checks(ago, monkeypatch):
    progress = Progress(io.StringIO())
    pace = ago(0, 10, 0)
    with progress.launch("k", pace):
        progress.on_start(event("users.own"))
        assert show_at(progress, monkeypatch, 100.1) == ""
        for now in (100.2, 101, 102, 103):  # one function after another, a pause of a tenth of a second between them
            progress.on_start(event("labkit.simulator.l2"))
            show_at(progress, monkeypatch, now, now + 0.7)
            progress.on_end(event("labkit.simulator.l2"))
        assert progress.stream.getvalue() == f"{PREPARING}\n"
    assert 0 < pace.elapsed_s < 1.5


def test_compiling_outside_a_launch_is_told_too(monkeypatch):
    progress = Progress(Terminal())
    show_at(progress, monkeypatch, 100)
    progress.on_start(event("labkit.simulator.random"))
    assert PREPARING in show_at(progress, monkeypatch, 100.5, 101.5)
    progress.on_end(event("labkit.simulator.random"))
    assert not progress.stream.getvalue().split("\r")[-2].strip()


def test_a_long_launch_is_not_silent(tmp_path):
    program = """
@cuda.jit
def spin(x, steps):
    i = cuda.grid(1)
    for _ in range(steps):
        x[i] += 1

spin[4, 32](np.zeros(128), 50_000)
"""
    result = run(tmp_path, HEADER + program)
    assert result.returncode == 0
    assert re.search(r"labkit: spin, \d of 4 blocks, \d+ s", result.stderr)
