"""Traces of loops: what the caches serve, what is counted, and that nothing a learner writes crashes."""

import linecache
import time
from importlib import import_module

import numpy as np
import pytest
from numba import njit
from sampling import sampled

from labkit.loops import trace
from labkit.machine.gpus import CacheLevel, Cpu
from labkit.simulator.errors import KernelError, LaunchError

LIMIT = 10
TOY = Cpu("toy", 1, 1.0, (CacheLevel("L1", 256, 2, 1), CacheLevel("L2", 1024, 4, 4)), 10.0, {}, "made up")


def line_of(loop, text):
    """The line of the file that holds `text` in the loop's source."""
    import inspect

    lines, first = inspect.getsourcelines(getattr(loop, "py_func", loop))
    return first + next(n for n, line in enumerate(lines) if text in line)


def written(text):
    """A loop from text, as a notebook cell would define it."""
    name = f"<cell {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"np": np, "__name__": "__main__"}
    exec(compile(text, name, "exec"), namespace)
    return namespace["loop"]


@njit
def copy(x, y):
    for i in range(x.size):
        y[i] = x[i]


def test_a_walk_along_memory_misses_once_a_line():
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    traced = trace(copy, x, y, cpu=TOY)
    assert np.array_equal(traced.outputs[1], x) and not y.any()
    assert traced.levels == ("L1", "L2", "DRAM")
    assert traced.served("x") == (60, 0, 4) and traced.served("y") == (60, 0, 4)
    assert traced.miss_rate("x") == 1 / 16
    assert traced.counters.dram_read_bytes == 2 * 256 and traced.counters.dram_write_bytes == 256


def test_every_element_knows_who_served_it():
    traced = trace(copy, np.arange(64, dtype=np.float32), np.zeros(64, np.float32), cpu=TOY)
    from_dram = traced.elements["x"][:, 2]
    assert np.flatnonzero(from_dram).tolist() == [0, 16, 32, 48]
    assert traced.elements["x"].sum(axis=-1).tolist() == [1] * 64


@njit
def down_and_across(X, out):
    for _ in range(2):
        for j in range(X.shape[1]):
            for i in range(X.shape[0]):
                out[0] += X[i, j]


def test_elements_of_a_transposed_array_stand_where_the_loop_sees_them():
    """Down the columns of a transposed array is along memory."""
    X = np.ones((8, 16), np.float32)
    across = trace(down_and_across, X, np.zeros(1, np.float32), cpu=TOY)
    along = trace(down_and_across, np.ones((16, 8), np.float32).T, np.zeros(1, np.float32), cpu=TOY)
    assert across.miss_rate("X") > 0.5 > 0.07 > along.miss_rate("X")
    assert along.elements["X"][..., 1:].sum(axis=-1)[0].tolist() == [2, 0] * 8
    assert along.elements["X"].sum(axis=-1).min() == 2


def test_what_fits_the_second_level_is_served_there():
    X = np.ones((8, 16), np.float32)  # 512 bytes: too much for L1, not for L2
    assert trace(down_and_across, X, np.zeros(1, np.float32), cpu=TOY).served("X")[2] == 8


def test_a_line_stored_to_is_written_back_once():
    x, y = np.ones(4096, np.float32), np.zeros(4096, np.float32)
    counters = trace(copy, x, y, cpu=TOY).counters
    assert counters.dram_write_bytes == y.nbytes
    assert counters.dram_read_bytes == x.nbytes + y.nbytes


@njit
def sums(x, y, n):
    for i in range(n // 2):
        y[i] += x[2 * i] * np.float32(2) + x[2 * i + 1]


def test_flops_are_those_on_floats_alone():
    traced = trace(sums, np.ones(8, np.float32), np.zeros(4, np.float32), 8)
    assert traced.counters.flops == 4 * 3
    assert (traced.counters.loads, traced.counters.stores) == (12, 4)


def test_sites_have_their_line_and_text():
    traced = trace(sums, np.ones(8, np.float32), np.zeros(4, np.float32), 8)
    line = line_of(sums, "y[i] +=")
    assert [(s.site.text, s.site.kind, s.site.line, s.accesses) for s in traced.sites] == [
        ("y[i]", "load", line, 4),
        ("x[2 * i]", "load", line, 4),
        ("x[2 * i + 1]", "load", line, 4),
        ("y[i]", "store", line, 4),
    ]


@njit
def too_far(x, y):
    for i in range(LIMIT):
        y[i] = x[i + 1]


def test_an_access_outside_is_a_finding_with_line_and_index():
    traced = trace(too_far, np.ones(8, np.float32), np.zeros(8, np.float32))
    load, store = traced.errors
    assert load.kind == store.kind == "bounds"
    assert load.line == line_of(too_far, "y[i]") and load.index == (8,) and load.count == 3
    assert "reads x[8], but x has 8 elements" in load.message and "writes y[8]" in store.message
    assert load.fact.endswith("x has 8 elements.") and load.message.endswith(load.remedy)


@njit
def swaps(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, 0] = x[j, i]


def test_an_index_outside_is_traced_to_its_loop():
    traced = trace(swaps, np.ones((2, 5), np.float32), np.zeros((2, 1), np.float32))
    line = line_of(swaps, "for j")
    assert traced.errors[0].remedy == (
        f"`j`, of the loop in line {line}, must stay below 2, the rows of x: end its `range` there, or write `x[i, j]` "
        "if that is the element that you mean."
    )


@njit
def backwards(x, y):
    for i in range(4):
        y[i] = x[i - 1]


def test_a_negative_index_wraps_and_is_advice():
    traced = trace(backwards, np.arange(4, dtype=np.float32), np.zeros(4, np.float32))
    assert traced.outputs[1].tolist() == [3, 0, 1, 2]
    assert not traced.errors
    assert traced.advice[0].kind == "negative-index" and traced.advice[0].index == (-1,)
    assert traced.advice[0].fact.endswith("x[-1], which counts from the end.")


def test_a_run_can_be_sampled():
    n = 200_000
    traced = trace(copy, np.ones(n, np.float32), np.zeros(n, np.float32), most_accesses=100_001, record=5)
    assert not traced.complete
    assert traced.counters.accesses == 100_001
    assert traced.samples.index.tolist() == [0, 0, 1, 1, 2]
    assert traced.samples.level.tolist() == [3, 3, 0, 0, 0]


@njit
def copy_up_to(x, y, last):
    for i in range(x.size):
        y[i] = x[i]
        if i == last:
            return


@pytest.mark.parametrize("most, complete", [(10, False), (99, False), (100, True), (None, True)])
@pytest.mark.parametrize("last", [49, -1])
def test_a_run_is_complete_if_it_made_no_more_accesses_than_asked_for(most, complete, last):
    """Wherever it ends, by `return` or with its last line."""
    x = np.ones(60 if last > 0 else 50, np.float32)
    traced = trace(copy_up_to, x, np.zeros_like(x), last, most_accesses=most)
    assert traced.complete == complete
    assert traced.counters.accesses == (most or 100)


@pytest.mark.parametrize("last", [49, -1])
def test_the_limit_of_accesses_is_exact(last, monkeypatch):
    x = np.ones(60 if last > 0 else 50, np.float32)
    module = import_module(trace.__module__)
    monkeypatch.setattr(module, "MAX_ACCESSES", 100)
    assert trace(copy_up_to, x, np.zeros_like(x), last).counters.accesses == 100
    monkeypatch.setattr(module, "MAX_ACCESSES", 99)
    with pytest.raises(KernelError, match="use smaller arrays or fewer rounds"):
        trace(copy_up_to, x, np.zeros_like(x), last)


@njit
def columns(X, out):
    for j in range(X.shape[1]):
        for i in range(X.shape[0]):
            out[0] += X[i][j]


def test_two_brackets_are_one_index():
    traced = trace(columns, np.ones((3, 4), np.float32), np.zeros(1, np.float32))
    assert traced.outputs[1][0] == 12
    assert "X[i][j]" in {site.site.text for site in traced.sites}


MISTAKES = {
    "C[:] = A @ B": "`@` hides the loops",
    "C[i0, 0] = A[0, 0]": "`i0` is not defined",
    "C[0, 0] = A[0]": "A has 2 dimensions and is given 1 index",
    "C[0, :] = A[0, 0]": "a slice works on a whole row",
    "C[M / 2, 0] = A[0, 0]": "divided with `//`",
    "half = M / 2; C[half, 0] = 0": "an index must be a whole number",
    "C = A": "A gets a second name",
    "C = 0": "C is an array; assign to its elements",
    "return C": "leave out what `return`",
    "C[0, 0] = sum([1, 2])": "`sum` works on lists",
    "C[0, 0] = np.dot(A, B)": "`np.dot` hides a loop",
    "print(A[0, 0])": "`print` is not compiled",
    "for row in A: pass": "goes over `A`",
    "for i in prange(M): pass": "use `range`",
    "x = [0 for i in range(3)]": "a list comprehension",
    "A[0, 0] + B[0, 0]": "computes something and drops it",
    "open('x')": "`open` cannot be called",
    "C[0, 0] = np.__name__": "is not traced",
    "C[0, 0] = ().__class__": "is not traced",
    "for i in range(0, M, 0): C[i, 0] = 0": "must not be zero",
    "C[0, 0] = 1 // (M - 4)": "division by zero",
    "load__ = 1": "ends in `__`",
    "C[0, 0] = tot": "`tot` is not defined; did you mean `total`?",
    "C[0, 0] = 'a'": "is not a number",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_a_sentence_with_its_line(mistake):
    total = "    total = 0.0\n" if "tot" in mistake else ""
    loop = written(f"def loop(A, B, C):\n    M = A.shape[0]\n{total}    {mistake}\n")
    with pytest.raises(KernelError) as refused:
        trace(loop, *(np.ones((4, 4), np.float32) for _ in range(3)))
    assert MISTAKES[mistake] in str(refused.value)
    assert refused.value.line == (1 if "__" in mistake and "ends" in MISTAKES[mistake] else 3 + bool(total))


def test_what_numba_cannot_type_names_its_line():
    loop = written("def loop(A, B, C):\n    total += A[0, 0]\n    C[0, 0] = total\n")
    with pytest.raises(KernelError, match=r"numba cannot compile `total \+= A") as refused:
        trace(loop, *(np.ones((4, 4), np.float32) for _ in range(3)))
    assert refused.value.line == 2


def test_the_stranger_cannot_reach_outside():
    for attack in ("np.save('x', A)", "C.tofile('x')", "__import__('os')", "np.ctypeslib"):
        loop = written(f"def loop(A, B, C):\n    C[0, 0] = {attack}\n")
        with pytest.raises(KernelError):
            trace(loop, *(np.ones((4, 4), np.float32) for _ in range(3)))


@pytest.mark.parametrize(
    "arguments, says", [((1,), "takes 2 arguments"), (([1], 2), "is a list"), (("a", 1), "is a str")]
)
def test_arguments_that_no_loop_takes(arguments, says):
    with pytest.raises(LaunchError, match=says):
        trace(copy, *arguments)


def test_a_closure_variable_is_frozen_as_it_is_now():
    def make(step):
        @njit
        def every(x, y):
            for i in range(0, x.size, step):
                y[i] = x[i]

        return every

    x = np.ones(8, np.float32)
    assert [trace(make(step), x, np.zeros(8, np.float32)).counters.stores for step in (1, 2, 4)] == [8, 4, 2]


ENDLESS = {  # the line that is to blame stands first
    "while i < 5: C[0, 0] = 1": "this `while` loop was stopped in round",
    "while i < 5: i *= 1": "this `while` loop was stopped in round",
    "while i < 5:\n        for k in range(1000): C[0, 0] = k": "this `while` loop was stopped in round",
    "for k in range(10000000000): C[0, 0] = k": "use smaller arrays or fewer rounds",
    "for k in range(10000000000): i += k % 3": "use smaller arrays or fewer rounds",
}


@pytest.fixture
def impatience(monkeypatch):
    """A tenth of the accesses and rounds after which a loop is stopped."""
    module = import_module(trace.__module__)
    for name in ("MAX_ACCESSES", "MAX_ITERATIONS"):
        monkeypatch.setattr(module, name, getattr(module, name) // 10)


def stopped(body):
    """The error of a loop with this body."""
    loop = written(f"def loop(C):\n    i = 0\n    for j in range(4): C[j, 0] = 0\n    {body}\n")
    with pytest.raises(KernelError, match=ENDLESS[body]) as stopped:
        trace(loop, np.ones((4, 4), np.float32))
    return stopped.value


@pytest.mark.parametrize("body", ENDLESS)
def test_a_loop_without_end_is_stopped_and_named(body, impatience):
    assert stopped(body).line == 4


@pytest.mark.parametrize("body", sampled(ENDLESS, 1))
def test_a_loop_without_end_is_stopped_within_seconds(body):
    began = time.process_time()
    stopped(body)
    assert time.process_time() - began < 30, "five seconds are meant"


def test_of_two_loops_the_endless_one_is_named(impatience):
    text = "def loop(C):\n    i = 0\n    while i < 9:\n        j = 0\n        while j < 3:\n            C[0, 0] = j\n"
    for steps, line in (("            j += 1\n", 3), ("            j -= 1\n        i += 1\n", 5)):
        with pytest.raises(KernelError) as stopped:
            trace(written(text + steps), np.ones((4, 4), np.float32))
        assert stopped.value.line == line


def test_a_loop_that_numba_gives_up_on_gets_a_sentence():
    text = "def loop(C):\n    i = 0\n    while i < 9:\n        j = 0\n        while j < 3:\n            C[0, 0] = j\n"
    with pytest.raises(KernelError, match="numba cannot compile this loop"):
        trace(written(text + "        i += 1\n"), np.ones((4, 4), np.float32))


def test_a_sample_of_a_loop_without_end_is_a_sample():
    loop = written("def loop(C):\n    while C[0, 0] > 0: C[0, 0] = 1\n")
    assert not trace(loop, np.ones((4, 4), np.float32), most_accesses=1000).complete


@njit
def exchanged_lengths(x, y):
    for i in range(x.shape[1]):
        for j in range(x.shape[0]):
            y[i, j] = x[i, j]


def test_lengths_that_two_loops_may_have_exchanged_are_asked_for():
    traced = trace(exchanged_lengths, np.ones((2, 5), np.float32), np.zeros((2, 5), np.float32))
    lines = [line_of(exchanged_lengths, name) for name in ("for i", "for j")]
    asked = f"Have the loops of lines {lines[0]} and {lines[1]} each other's lengths? Exchange them: write "
    asked += f"`range(x.shape[0])` in line {lines[0]}, and `range(x.shape[1])` in line {lines[1]}."
    assert traced.errors[0].remedy.endswith(asked) and "end its `range`" not in traced.errors[0].remedy


@njit
def lengths_of_the_other(x, y):
    rows, cols = y.shape
    for i in range(rows):
        for j in range(cols):
            y[j, i] = x[i, j]


def test_lengths_that_one_line_reads_are_exchanged_there():
    traced = trace(lengths_of_the_other, np.ones((2, 5), np.float32), np.zeros((5, 2), np.float32))
    line = line_of(lengths_of_the_other, "rows, cols")
    assert traced.errors[0].remedy.endswith(f"Exchange them, in line {line}: write `cols, rows = y.shape`.")
