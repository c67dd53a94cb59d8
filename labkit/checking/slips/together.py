"""Changes of what threads decide together: who comes to a barrier, who arrives, for which phase they wait."""

import ast
import re
from typing import Any

from labkit.checking.mutants import slots
from labkit.checking.slips.change import BARRIER, HINTED, LIKELY, Change, text_of
from labkit.checking.slips.several import (
    assignments,
    change,
    expression,
    name_pairs,
    names_of,
    slots_within,
    with_bodies,
)

_LANES = "cuda.threadIdx.x", "cuda.threadIdx.x % 32", "cuda.laneid"


def change_signals(function):
    """Yield the changes of a function."""
    yield from _decide_alike(function)
    yield from _arrive_once(function)
    yield from _wait_for_other_phase(function)
    yield from _copy_after_barrier(function)


def _of_a_thread(function):
    """Return the names whose values may differ from thread to thread of a block, and those that are alike in all."""
    mine, alike = set(), set()
    pairs: list[Any] = [pair for line in assignments(function) for pair in name_pairs(line)]
    loops: list[Any] = [n for n in ast.walk(function) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)]
    pairs += [(loop.target.id, loop.iter) for loop in loops]
    for _ in pairs:
        for name, value in pairs:
            text = text_of(value)
            if names_of(value) & mine or any(part in text for part in ("threadIdx", "grid(", "laneid")):
                mine.add(name)
    for name, value in pairs:
        if name not in mine and not any(isinstance(node, ast.Subscript | ast.Call) for node in ast.walk(value)):
            alike.add(name)
    return mine, sorted(alike)


def _decide_alike(function):
    """Decide by a name that all threads of a block share whether they come to a barrier."""
    mine, alike = _of_a_thread(function)
    has_barrier = "syncthreads" in text_of(function)
    for choice in [node for node in ast.walk(function) if isinstance(node, ast.If) and has_barrier]:
        leaves = any(isinstance(node, ast.Continue | ast.Break | ast.Return) for node in ast.walk(choice))
        if not (leaves or "syncthreads" in text_of(choice)):
            continue
        found = [
            slot for slot in slots_within(choice, choice.test) if isinstance(slot[3], ast.Name) and slot[3].id in mine
        ]
        for slot in found:
            for other in alike:
                said = f"`{slot[3].id}` differs from thread to thread, and all of a block must decide alike: "
                said += f"write `{other}`, so that they come to the barrier together."
                yield change(function, LIKELY, choice.lineno, said, [(*slot, ast.Name(other, ast.Load()))])


def _arrive_once(function):
    """Let one lane of a warp arrive, after all of them."""
    lanes = [name for line in assignments(function) for name, value in name_pairs(line) if text_of(value) in _LANES]
    for parent, field, place, node in list(slots(function)):
        if isinstance(node, ast.Expr) and "mbarrier_arrive(" in text_of(node) and lanes and place is not None:
            test = f"{lanes[0]} == 0"
            body = [*getattr(parent, field)]
            body[place : place + 1] = [ast.Expr(expression("cuda.syncwarp()")), ast.If(expression(test), [node], [])]
            said = "all lanes of a warp arrive, and one is to do it when all are done: "
            said += f"write `cuda.syncwarp()`, and arrive only `if {test}:`."
            unchanged = parent, field, getattr(parent, field)
            yield with_bodies(function, (parent, field, body), unchanged, node.lineno, said)


def _wait_for_other_phase(function):
    """Let those that must act first wait for the other parity."""
    for slot in list(slots(function)):
        match slot:
            case (ast.Call(call, [_, _, *_]), "args", place, node) if place and text_of(call) == "ptx.mbarrier_wait":
                parity = slot[0].args[-1]
                if parity is not node:
                    continue
                other = ast.BinOp(ast.Constant(1), ast.Sub(), node)
                if isinstance(node, ast.Constant) and node.value in (0, 1):
                    other = ast.Constant(1 - node.value)
                if text_of(node).endswith(" + 1) % 2"):
                    other = expression(text_of(node).removesuffix(" + 1) % 2").removeprefix("(") + " % 2")
                    said = "in the first round a wait for parity 1 goes on at once, before anything has come: "
                    said += f"write `{text_of(other)}` for `{text_of(node)}`."
                    yield change(function, HINTED, node.lineno, said, [(*slot, other)])
                    continue
                said = "nobody begins: who acts first must not wait in the first round. A wait for parity 1 goes on at "
                said += f"once while no phase is complete: write `{text_of(other)}` for `{text_of(node)}`."
                yield change(function, HINTED, node.lineno, said, [(*slot, other)])


def _copy_after_barrier(function):
    """Begin the copies of a loop after its barrier, which waits for those who read what the copies overwrite."""
    for loop in [node for node in ast.walk(function) if isinstance(node, ast.For | ast.While)]:
        barriers = [i for i, node in enumerate(loop.body) if text_of(node) == BARRIER]
        first = loop.body[: barriers[0]] if barriers else []
        waits = [text_of(n) for node in first for n in ast.walk(node) if _is_wait(n)]
        if not waits:
            continue
        copies = [ast.parse(text_of(node)).body[0] for node in first if not _is_wait(node)]
        copies = [ast.fix_missing_locations(_WithoutWaits().visit(node)) for node in copies]
        fewer = [int(number) - 1 for number in re.findall(r"\d+", " ".join(waits)) if int(number)]
        begin = next((node.lineno for node in first if not _is_wait(node)), loop.lineno)
        barrier = loop.body[barriers[0]]
        for number in dict.fromkeys(fewer or [0]):
            wait = f"ptx.cp_async_wait({number})"
            new = [ast.parse(wait).body[0], barrier, *copies, *loop.body[barriers[0] + 1 :]]
            said = "copies that begin here overwrite what slow threads still read in the iteration before: first "
            said += f"`{wait}` and the barrier of line {barrier.lineno}, and then begin them."
            old, loop.body = loop.body, new
            text = text_of(function)
            loop.body = old
            yield Change(HINTED, begin, said, text)


def _is_wait(node):
    return isinstance(node, ast.Expr) and text_of(node).startswith("ptx.cp_async_wait(")


class _WithoutWaits(ast.NodeTransformer):
    """Takes out the lines that wait for copies."""

    def visit_Expr(self, node):
        return None if _is_wait(node) else node
