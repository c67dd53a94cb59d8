"""Every planted bug is found, at its line and with its threads; every right kernel is left in peace."""

from importlib import import_module
from inspect import getsourcelines
from pkgutil import iter_modules

import planted
import pytest

import labkit
from labkit import cuda
from labkit.trace import ThreadId

BUGS = [import_module(f"planted.{module.name}") for module in iter_modules(planted.__path__)]
each_bug = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__.removeprefix("planted."))


def marked(kernel, mark):
    """The numbers of the kernel's lines that bear the mark."""
    lines, first = getsourcelines(kernel.py_func)
    return {first + i for i, line in enumerate(lines) if mark in line}


def thread_id(block, thread):
    return ThreadId(*((*(i if isinstance(i, tuple) else (i,)), 0, 0)[:3] for i in (block, thread)))


def run(kernel, bug, grid, block):
    arguments = bug.arguments()
    if cuda.on_gpu() and any(map(cuda.is_cuda_array, arguments)):
        pytest.skip("a GPU's own memory does not tell what nobody has written")
    return labkit.simulate(kernel, grid, block, *arguments)


@each_bug
def test_the_wrong_kernel_is_told_what_where_and_who(bug):
    trace = run(bug.wrong, bug, bug.GRID, bug.BLOCK)
    if hasattr(bug, "between_launches"):
        assert not trace.findings
        bug.between_launches()
        trace = run(bug.wrong, bug, bug.GRID, bug.BLOCK)
    here, there = marked(bug.wrong, "# <- here"), marked(bug.wrong, "# <- and here")
    found = next(f for f in trace.findings if f.kind == bug.FINDING and f.array == bug.ARRAY)
    assert {found.line} == here
    assert found.other_line is None or {found.other_line} == there
    assert set(found.threads) == {thread_id(*who) for who in bug.WHO}
    assert {f.kind for f in trace.errors} <= {bug.FINDING, getattr(bug, "ALSO", None)}, "nothing else is wrong with it"
    assert {f.line for f in trace.errors} <= here | there


BEGINS_WITH = {"barrier": "cuda.syncthreads(", "deadlock": "while ", "mask": "cuda.", "shuffle": "cuda.shfl_"}


def test_a_variable_without_a_value_is_pointed_at():
    bug = import_module("planted.variable_set_on_one_path")
    trace = run(bug.wrong, bug, bug.GRID, bug.BLOCK)
    found = next(f for f in trace.errors if f.kind == "uninitialised")
    name = found.message.split("`")[1]
    assert trace.source.splitlines()[found.line - trace.first_line][found.column :].startswith(name)


@each_bug
def test_a_finding_points_at_what_is_wrong_in_its_line(bug):
    if bug.FINDING in BEGINS_WITH:
        trace = run(bug.wrong, bug, bug.GRID, bug.BLOCK)
        for found in (f for f in trace.errors if f.kind == bug.FINDING):
            line = trace.source.splitlines()[found.line - trace.first_line]
            assert line[found.column :].startswith(BEGINS_WITH[found.kind])


@each_bug
def test_the_right_kernel_is_left_in_peace(bug):
    trace = run(bug.right, bug, getattr(bug, "RIGHT_GRID", bug.GRID), getattr(bug, "RIGHT_BLOCK", bug.BLOCK))
    assert trace.findings == ()


def test_the_planted_bugs_cover_every_kind_of_finding():
    kinds = {bug.FINDING for bug in BUGS}
    assert kinds == {
        *"race barrier deadlock mask shuffle bounds misaligned in-flight uninitialised unwritten".split(),
        *"uncoalesced bank-conflict float64 negative-index idle-lanes tail changed-global".split(),
    }
