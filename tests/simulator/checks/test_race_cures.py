"""Suggested fixes of a race: the one that fits, and a fixed kernel without a race."""

import numpy as np
import pytest
from cells import kernel_in, line_of

import labkit
from labkit import cuda
from labkit.simulator import random

REDUCTION = """
@cuda.jit
def kernel(x, y, n, flag):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        {}
        step //= 2
    cuda.syncthreads()
    y[t] = s[0]
"""

LAST_BLOCK = """
@cuda.jit
def kernel(x, y, n, flag):
    is_last = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    y[i] = 2 * x[i]
    cuda.threadfence()
    {}
    if t == 0:
        is_last[0] = cuda.atomic.add(n, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if is_last[0]:
        for k in range(t, x.size, 64):
            cuda.atomic.add(x, 0, y[k])
"""

JACOBI = """
@cuda.jit
def kernel(x, y, n, flag):
    g = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(3):
        if 0 < i < x.size - 1:
            y[i] = x[i - 1] + x[i + 1]
        g.sync()
        x[i] = y[i]
        {}
"""

IN_TURNS = """
@cuda.jit
def kernel(x, y, n, flag):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for k in range(2):
        s[t] = x[(cuda.grid(1) + k) % x.size]
        cuda.syncthreads()
        if t < 60:
            y[cuda.grid(1)] += s[63 - t]
        {}
"""

ONE_FOR_ALL = """
@cuda.jit
def kernel(x, y, n, flag):
    s = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = x[0]
    {}
    y[cuda.grid(1)] = s[0]
"""

# The kernel, the line that it lacks, one of the two lines of the race, and the cure as its remedy begins.
BARRIERS = {
    "reduction": (REDUCTION, "cuda.syncthreads()", "s[t] +=", "at the end of the body of the loop in line 8, outside"),
    "last block": (LAST_BLOCK, "cuda.syncthreads()", "y[i] =", "between line 6 and line 10: the atomic there"),
    "Jacobi": (JACOBI, "g.sync()", "x[i - 1]", "after line 9, before the loop returns to line 7."),
    "in turns": (
        IN_TURNS,
        "cuda.syncthreads()",
        "63 - t",
        "after line 9, before the loop returns to line 6, outside",
    ),
    "one for all": (
        ONE_FOR_ALL,
        "cuda.syncthreads()",
        "= s[0]",
        "between line 6 and line 8, outside of the `if` in line 5.",
    ),
}


def errors(kernel, blocks, dtype=np.float32):
    arguments = np.ones(128, dtype), np.zeros(128, dtype), np.zeros(1, np.int32), np.zeros(1, np.int32)
    return labkit.simulate(kernel, blocks, 128 // blocks, *arguments).errors


@pytest.mark.parametrize("name", BARRIERS)
def test_a_barrier_is_put_where_it_fixes_the_race(name):
    text, barrier, fragment, cure = BARRIERS[name]
    blocks = 1 if name == "reduction" else 2
    assert errors(kernel_in(text.format(barrier)), blocks) == ()
    kernel = kernel_in(text.format("pass"))
    found = [f for f in errors(kernel, blocks) if f.remedy.startswith(f"Put `{barrier}` {cure}")]
    assert line_of(kernel, fragment) in (found[0].line, found[0].other_line)
    assert ("in the next iteration of the loop" in found[0].fact) == ("loop" in cure)


@pytest.mark.parametrize("otherwise", ["else", "elif t >= 32"])
def test_no_barrier_is_put_between_branches_of_one_if(otherwise):
    text = """
@cuda.jit
def kernel(x, y, n, flag):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t < 32:
        s[t] = x[t]
    {}:
        y[cuda.grid(1)] = s[t - 32]
"""
    found = errors(kernel_in(text.format(otherwise)), 2)
    cure = "No barrier can stand between two branches of the `if` in line 5: make them two `if` statements with"
    assert [f.remedy.startswith(cure) for f in found if f.kind == "race"] == [True]
    cured = text.format("cuda.syncthreads()\n    if t >= 32")
    assert not errors(kernel_in(cured), 2)


WAITS = """
@cuda.jit
def kernel(x, y, n, flag):
    t = cuda.threadIdx.x
    if t == 0:
        {set}
    if t == 32:
        while {get} == 0:
            pass
"""


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_flag_is_to_be_set_and_read_by_atomics(blocks):
    arguments = np.ones(1, np.float32), np.ones(1, np.float32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    plain = kernel_in(WAITS.format(set="flag[0] = 1", get="flag[0]"))
    [race] = [f for f in labkit.simulate(plain, blocks, 64, *arguments).errors if f.kind == "race"]
    assert "read it by `cuda.atomic.add(flag, 0, 0)`, set it by `cuda.atomic.exch(flag, 0, ...)`" in race.remedy
    assert "cuda.threadfence()" in race.remedy and "syncthreads" not in race.remedy
    mended = kernel_in(WAITS.format(set="cuda.atomic.exch(flag, 0, 1)", get="cuda.atomic.add(flag, 0, 0)"))
    assert labkit.simulate(mended, blocks, 64, *arguments).errors == ()


# Kernels whose blocks race, the array, the cures, and the kernel after them.
BETWEEN_BLOCKS = {
    "breadth-first search": (
        """
@cuda.jit
def kernel(x, y, n, flag):
    v = cuda.grid(1)
    if y[v] == 0:
        for u in range(v + 1, v + 40):
            if u < y.size and y[u] == 0:
                pass
            if y[u % y.size] == 0:
                y[u % y.size] = 2
                n[0] = 1
""",
        ["`cuda.atomic.cas(y, u % y.size, 0, 2)`, and read y in line 4 by `cuda.atomic.add(y, v, 0)`, line 6 by"],
        [
            ("if y[v] == 0", "if cuda.atomic.add(y, v, 0) == 0"),
            ("and y[u] == 0", "and cuda.atomic.add(y, u, 0) == 0"),
            ("if y[u % y.size] == 0:", "if cuda.atomic.cas(y, u % y.size, 0, 2) == 0:"),
            ("y[u % y.size] = 2", "pass"),
        ],
    ),
    "shortest paths": (
        """
@cuda.jit
def kernel(x, y, n, flag):
    e = cuda.grid(1)
    new = y[e] + x[e] - 3
    if new < y[(e * 7) % y.size]:
        y[(e * 7) % y.size] = new
        n[0] = 1
""",
        ["`cuda.atomic.min(y, e * 7 % y.size, new)`, and read y in line 4 by `cuda.atomic.add(y, e, 0)`"],
        [
            ("y[e] + x", "cuda.atomic.add(y, e, 0) + x"),
            ("if new < y[(e * 7) % y.size]:", "if new < cuda.atomic.min(y, (e * 7) % y.size, new):"),
            ("y[(e * 7) % y.size] = new", "pass"),
        ],
    ),
    "a greatest value, read in its condition and at the end": (
        """
@cuda.jit
def kernel(x, y, n, flag):
    i = cuda.grid(1)
    if x[i] > y[0]:
        cuda.atomic.max(y, 0, i)
    x[i] = y[0]
""",
        [
            "Read it by an atomic, too: `cuda.atomic.add(y, 0, 0)` in place of `y[0]`.",
            "read it by `cuda.atomic.add(y, 0, 0)` if it may still change after that, or in another launch if",
        ],
        [
            ("if x[i] > y[0]", "if x[i] > cuda.atomic.add(y, 0, 0)"),
            ("x[i] = y[0]", "x[i] = cuda.atomic.add(y, 0, 0)"),
        ],
    ),
    "a histogram": (
        """
@cuda.jit
def kernel(x, y, n, flag):
    i = cuda.grid(1)
    y[x[i] % 4] += 1
    n[0] = n[0] - x[i]
""",
        ["`cuda.atomic.add(y, x[i] % 4, 1)`", "`cuda.atomic.sub(n, 0, x[i])`"],
        [
            ("y[x[i] % 4] += 1", "cuda.atomic.add(y, x[i] % 4, 1)"),
            ("n[0] = n[0] - x[i]", "cuda.atomic.sub(n, 0, x[i])"),
        ],
    ),
    "a step in place": (
        """
@cuda.jit
def kernel(x, y, n, flag):
    i = cuda.grid(1)
    before = y[i - 1] if i > 0 else y[i]
    if before == 0:
        y[i] = 1
    elif before == 1:
        y[i] = 2
""",
        ["write the results to a second array, which the next launch reads"],
        [("        y[i] = 1", "        x[i] = 1"), ("        y[i] = 2", "        x[i] = 2")],
    ),
}


@pytest.mark.parametrize("name", BETWEEN_BLOCKS)
def test_blocks_that_race_get_one_cure_and_it_cures(name):
    text, cures, edits = BETWEEN_BLOCKS[name]
    found = errors(kernel_in(text), 2, np.int32)
    assert {f.kind for f in found} == {"race"}
    assert len(found) == len(cures)
    for cure, finding in zip(cures, found, strict=True):
        assert cure in finding.remedy
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    assert errors(kernel_in(text), 2, np.int32) == ()


def test_a_read_in_the_condition_of_an_atomic_gets_no_barrier_in_a_branch():
    text = BETWEEN_BLOCKS["a greatest value, read in its condition and at the end"][0]
    first, last = errors(kernel_in(text), 1, np.int32)
    assert first.remedy == "Read it by an atomic, too: `cuda.atomic.add(y, 0, 0)` in place of `y[0]`."
    assert last.remedy == "Put `cuda.syncthreads()` between line 5 and line 6, outside of the `if` in line 4."


def test_no_compare_and_swap_is_told_for_floats_which_numba_has_not():
    text, *_ = BETWEEN_BLOCKS["breadth-first search"]
    found = errors(kernel_in(text), 2, np.float32)
    assert found and not any("cuda.atomic.cas" in f.remedy for f in found)


def test_the_reading_line_is_one_that_the_thread_ran():
    """Two threads read an element at two lines, and a third one writes it."""
    kernel = kernel_in("""
@cuda.jit
def kernel(x, y, n, flag):
    t = cuda.grid(1)
    if t == 3:
        x[3] = y[0]
    if t == 40:
        x[40] = 2 * y[0]
    if t == 100:
        y[0] = 1
""")
    for blocks in (1, 2, 4):
        [race] = errors(kernel, blocks)
        reader = next(thread for thread in race.threads if thread.block[0] * 128 // blocks + thread.thread[0] != 100)
        number = reader.block[0] * 128 // blocks + reader.thread[0]
        lines = {3: line_of(kernel, "x[3]"), 40: line_of(kernel, "x[40]")}
        assert lines[number] in (race.line, race.other_line)


# Loops in which threads take elements of others, and the step as written.
STRIDES = {
    "a range": ("for i in range(cuda.grid(1), y.size, cuda.blockDim.x):\n        y[i] += 1", "cuda.blockDim.x"),
    "a while": (
        "i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x\n    while i < y.size:\n        y[i] += 1\n"
        "        i += 16",
        "16",
    ),
    "a name": (
        "i = cuda.grid(1)\n    step = cuda.gridDim.x * 8\n    for k in range(i, y.size, step):\n        y[k] += 1",
        "cuda.gridDim.x * 8",
    ),
}


@pytest.mark.parametrize("name", STRIDES)
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_step_that_is_not_the_grids_size_is_the_cause(name, blocks):
    loop, step = STRIDES[name]
    text = f"\n@cuda.jit\ndef kernel(x, y):\n    {loop}\n"
    launch = blocks, 32, np.ones(128), np.zeros(128, np.float32)
    found = labkit.simulate(kernel_in(text), *launch).errors
    steps_right = name == "a range" and blocks == 1
    assert len(found) == (not steps_right) and {f.kind for f in found} <= {"race"}
    for race in found:
        width = {"a range": 32, "a while": 16, "a name": 8 * blocks}[name]
        assert f" steps by {width}, and the grid has {32 * blocks} threads, so that several of them" in race.remedy
    mended = text.replace(step, race.remedy.split("`")[1]) if found else text
    assert labkit.simulate(kernel_in(mended), *launch).errors == ()


def test_a_loop_over_pairs_has_no_step_to_blame():
    """Each thread begins at its own number, and goes on by 1, but the race is between a loop and a plain store."""
    text = """
@cuda.jit
def kernel(x, y):
    i = cuda.grid(1)
    x[i] = 0
    for k in range(i, x.size, 1):
        y[i] += x[k]
"""
    found = labkit.simulate(kernel_in(text), 2, 32, np.ones(64), np.zeros(64)).errors
    assert found and not any("gridsize" in f.remedy for f in found)


# Loops in which blocks read the same elements, and add them up by an atomic.
REPEATED = {
    "a sum": "for i in range(cuda.grid(1), x.size, {}):\n        cuda.atomic.add(y, 0, x[i])",
    "a sum of its own": (
        "total = 0\n    for i in range(cuda.grid(1), x.size, {}):\n        total += x[i]\n"
        "    cuda.atomic.add(y, 0, total)"
    ),
    "a while": ("i = cuda.grid(1)\n    while i < x.size:\n        cuda.atomic.add(y, int(x[i]), 1)\n        i += {}"),
}


@pytest.mark.parametrize("name", REPEATED)
def test_blocks_that_read_the_same_elements_before_an_atomic_are_advice(name):
    def advice(step, blocks=2, size=128):
        kernel = kernel_in(f"\n@cuda.jit\ndef kernel(x, y):\n    {REPEATED[name].format(step)}\n")
        trace = labkit.simulate(kernel, blocks, 32, np.ones(size, np.float32), np.zeros(2, np.float32))
        return [f for f in trace.advice if f.kind == "repeated"]

    [finding] = advice("cuda.blockDim.x")
    assert "the threads read `x[i]` 224 times, and x has 128 elements." in finding.fact
    assert " steps by 32, and the grid has 64 threads, so that several of them" in finding.remedy
    assert advice("cuda.gridsize(1)") == advice("cuda.blockDim.x", blocks=1) == advice("cuda.blockDim.x", size=32) == []


def test_a_loop_over_pairs_is_no_repetition():
    text = """
@cuda.jit
def kernel(x, y):
    i = cuda.grid(1)
    for k in range(i, x.size, {}):
        cuda.atomic.add(y, i, x[i] * x[k])
"""
    for step, block in ((1, 32), (1, 1), (2, 32)):
        trace = labkit.simulate(kernel_in(text.format(step)), 64 // block, block, np.ones(64), np.zeros(64))
        assert not [f for f in trace.advice if f.kind == "repeated"]


DRAWS = """
@cuda.jit
def kernel(states, out):
    {}
    out[{}] = uniform(states, {})
"""


@pytest.mark.parametrize(
    ("names", "element", "index", "launch"),
    [
        ("i = cuda.grid(1)", "i", "cuda.threadIdx.x", (2, 32)),
        ("i = cuda.grid(1)", "i", "0", (1, 32)),
        ("x, y = cuda.grid(2)", "x + 8 * y", "y", ((2, 2), (4, 4))),
        ("x, y, z = cuda.grid(3)", "x + 8 * (y + 4 * z)", "z", ((2, 1, 2), (4, 4, 4))),
    ],
)
def test_a_random_state_for_each_thread(names, element, index, launch):
    text = DRAWS.replace("uniform", "xoroshiro128p_uniform")
    made = {"xoroshiro128p_uniform": random.xoroshiro128p_uniform_float32}
    arguments = random.create_xoroshiro128p_states(64, seed=1), np.zeros(256)
    [race] = labkit.simulate(kernel_in(text.format(names, element, index), **made), *launch, *arguments).errors
    assert race.kind == "race" and race.remedy.startswith("Give each thread a state of its own: index states by `")
    own, *named, make = race.remedy.split("`")[1::2]
    states = eval(make, vars(random))
    body = "\n    ".join([names, *named])
    kernel = kernel_in(text.format(body, element, own), **made)
    assert labkit.simulate(kernel, *launch, states, np.zeros(256)).errors == ()


def test_too_few_random_states():
    text = DRAWS.replace("uniform", "xoroshiro128p_uniform").format("i = cuda.grid(1)", "i", "i")
    kernel = kernel_in(text, xoroshiro128p_uniform=random.xoroshiro128p_uniform_float32)
    found = labkit.simulate(kernel, 2, 32, random.create_xoroshiro128p_states(32, seed=1), np.zeros(64)).errors
    assert {f.kind for f in found} == {"bounds"}
    states = eval(found[0].remedy.split("`")[1], vars(random))
    assert labkit.simulate(kernel, 2, 32, states, np.zeros(64)).errors == ()


TOLD_BY_ONE_THREAD = """
@cuda.jit
def kernel(x, y, n, flag):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 1:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        y[t] = x[t]
    else:
        x[t] = t
        {}
        if t == 0:
            cuda.threadfence()
            cuda.atomic.add(flag, 0, 1)
"""


def test_another_block_is_not_told_by_a_warp():
    kernel = kernel_in(TOLD_BY_ONE_THREAD.format("pass"))
    found = errors(kernel, 2)
    assert [f.kind for f in found] == ["race"]
    assert found[0].remedy.startswith(f"Put `cuda.syncthreads()` after line {line_of(kernel, 'x[t] = t')}, before one")
    assert errors(kernel_in(TOLD_BY_ONE_THREAD.format("cuda.syncthreads()")), 2) == ()


UPDATES = {
    "y[0] += x[i]": "cuda.atomic.add(y, 0, x[i])",
    "y[i % 3] -= 2": "cuda.atomic.sub(y, i % 3, 2)",
    "y[0] = y[0] + x[i] * 2": "cuda.atomic.add(y, 0, x[i] * 2)",
}


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("blocks", [1, 2])
def test_an_update_gets_the_atomic_that_does_it(update, blocks):
    text = "@cuda.jit\ndef kernel(x, y, n, flag):\n    i = cuda.grid(1)\n    {}\n"
    [race] = errors(kernel_in(text.format(update)), blocks)
    assert race.remedy == f"Add in one step: `{UPDATES[update]}`."
    assert errors(kernel_in(text.format(UPDATES[update])), blocks) == ()


IN_ROUNDS = """
@cuda.jit
def kernel(x, y, n, flag):
    g = cuda.cg.this_grid()
    i = cuda.grid(1)
    for k in range(2):
        if i % 2 == k and i + 1 < y.size and y[i] <= y[i + 1]:
            y[i], y[i + 1] = y[i + 1] + 1, y[i]
        {}
"""


def test_a_barrier_of_one_block_is_not_one_of_all():
    text = IN_ROUNDS.replace("    g = cuda.cg.this_grid()\n", "")
    found = errors(kernel_in(text.format("cuda.syncthreads()")), 2)
    assert {f.remedy for f in found} == {
        "`cuda.syncthreads()` in line 7 waits for the threads of one block, and blocks run in any order: launch the "
        "kernel once per iteration of the loop, or wait for all blocks with `cuda.cg.this_grid().sync()`."
    }
    assert errors(kernel_in(IN_ROUNDS.format("g.sync()")), 2) == ()


SEARCH = """
@cuda.jit
def kernel(x, y, n, flag):
    v = cuda.grid(1)
    if {read} == 0:
        w = (x[v] + v) % y.size
        if {compare}:
            {store}
"""


def test_a_search_in_one_block_gets_a_compare_and_swap():
    found = errors(kernel_in(SEARCH.format(read="y[v]", compare="y[w] == 0", store="y[w] = 2")), 1, np.int32)
    atomics = "`cuda.atomic.cas(y, w, 0, 2)`, and read y in line 4 by `cuda.atomic.add(y, v, 0)`."
    assert {f.remedy for f in found} == {f"Compare and store in one step, {atomics}"}
    _, swap, _, read, _ = atomics.split("`")
    assert errors(kernel_in(SEARCH.format(read=read, compare=f"{swap} == 0", store="pass")), 1, np.int32) == ()


@pytest.mark.parametrize(
    ("call", "lack"),
    [
        ("cuda.syncwarp()", "waits for the threads of one warp alone"),
        ("cuda.threadfence()", "waits for no other thread"),
    ],
)
def test_a_weaker_call_between_the_lines_is_named(call, lack):
    kernel = kernel_in(REVERSED.format(call))
    (race,) = [f for f in labkit.simulate(kernel, 1, 64, np.ones(64, np.float32)).errors if f.kind == "race"]
    assert race.remedy.startswith(f"`{call}` in line ") and f"{lack}. Put `cuda.syncthreads()`" in race.remedy


REVERSED = """
@cuda.jit
def kernel(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    {}
    x[t] = s[63 - t]
"""


@cuda.jit
def replaces(x, out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t % 32 == 0:
        s[t // 32] = x[t] + x[0]
    cuda.syncthreads()
    out[t] = s[t]


def test_of_two_stores_the_indices_are_asked_for_before_a_barrier():
    traced = labkit.simulate(replaces, 1, 64, np.ones(64, np.float32), np.zeros(64, np.float32))
    race = next(f for f in traced.errors if f.kind == "race")
    first, last = line_of(replaces, "s[t] = x"), line_of(replaces, "s[t // 32] =")
    assert race.remedy.startswith(f"With a barrier, too, line {last} would replace what line {first} stored: are the ")
    assert f"If so, put `cuda.syncthreads()` between line {first} and line {last}" in race.remedy


@cuda.jit
def waits_after_the_loop(x, out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    for k in range(2):
        s[t] = x[t] + k
        cuda.syncthreads()
        out[t] += s[63 - t]
    cuda.syncthreads()


def test_a_barrier_that_stands_after_the_loop_is_moved_into_it():
    traced = labkit.simulate(waits_after_the_loop, 1, 64, np.ones(64, np.float32), np.zeros(64, np.float32))
    race = next(f for f in traced.errors if f.kind == "race")
    loop = line_of(waits_after_the_loop, "for k")
    assert race.remedy == (
        f"The barrier in line {loop + 4} stands after the loop of line {loop}: move it into that loop, to the end of "
        "its body."
    )
