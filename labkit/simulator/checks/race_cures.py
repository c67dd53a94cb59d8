"""Causes of races and their fixes, in a learner's words, from the lines of the accesses in the source."""

import ast
from dataclasses import dataclass
from functools import lru_cache

from labkit.simulator.checks.origins import origins_of
from labkit.simulator.checks.races import FENCE, LOCK_FENCE, UNORDERED, WAIT, WARP
from labkit.simulator.reading.syntax import is_spin
from labkit.trace import Site

LOOPS = (ast.For, ast.While)
LACKS = {  # what a call does not do that looks like a barrier or a fence
    "cuda.syncwarp": "waits for the threads of one warp alone",
    "cuda.threadfence": "orders the writes of its own thread, and waits for no other thread",
    "cuda.threadfence_block": "orders the writes of its own thread, for its block alone, and waits for no other thread",
}


@dataclass(frozen=True)
class Race:
    """Two accesses by different threads that nothing orders: the one at `site`, and the earlier one at `other`."""

    kernel: ast.FunctionDef
    sites: list[Site]  # all accesses of the kernel
    site: Site
    other: Site
    lockstep: bool  # all warps ran as one set
    across: bool  # the threads are in different blocks
    is_informed: bool  # the later thread heard from the other's block by an atomic
    missing: int  # what would order the two, of `races`: WAIT, LOCK_FENCE, FENCE, WARP or UNORDERED
    locks: frozenset = frozenset()  # the atomics that may take a lock: array and line
    is_integer: bool = True  # the elements are integers, which a compare-and-swap needs
    is_too_early: bool = False  # the other read an element that nothing had written
    is_copied: bool = False  # the other is an asynchronous copy, done as soon as its thread has waited for it

    @property
    def in_next_iteration(self) -> bool:
        """True if the later access belongs to the next iteration of a loop around both."""
        site, other = self.site, self.other
        backwards = site.line < other.line
        if site.line == other.line:  # a statement reads before it writes
            backwards = self.lockstep and (site.kind, other.kind) == ("load", "store")
        return backwards and self._enclosing(LOOPS) is not None

    @property
    def spin(self) -> Site | None:
        """The read in the condition of a loop that waits for another thread, if one of the accesses is that."""
        both = (self.site, self.other)
        read = (s for s in both if s.kind == "load" and (s.line, s.column) in _places_of_spins(self.kernel))
        return next((s for s in read if isinstance(_parse(s.text), ast.Subscript)), None)

    @property
    def is_plain_release(self) -> bool:
        """True if one of the accesses releases a lock by a plain store."""
        is_lock = self.site.array in {array for array, _ in self.locks}
        return is_lock and {self.site.kind, self.other.kind} == {"atomic", "store"}

    @property
    def how(self) -> str:
        """The reason that either access may come first, as the beginning of a sentence."""
        if self.missing == WARP:
            return "The signal that another thread of its warp sent in between covers only that thread"
        if self.missing == WAIT:
            return "Only another lane of its warp has waited for that, which it has not met since"
        if self.missing == FENCE:
            return "The atomic in between does not order the accesses before it"
        if self.missing == LOCK_FENCE:
            return "A lock alone does not keep later reads from running before it"
        return "Nothing says which comes first"

    def cure(self) -> str:
        """Return how to fix the race, after what a call between the two lines lacks."""
        return f"{self._tell_weaker_call()}{self._cure()}"

    def _tell_weaker_call(self):
        """Return a sentence on a fence, or a barrier of a warp, that stands where a stronger one is needed; or ""."""
        if self.missing not in (UNORDERED, FENCE) or self.in_next_iteration:
            return ""
        first, last = sorted((self.site.line, self.other.line))
        weaker = {name: lack for name, lack in LACKS.items() if not self.across or name == "cuda.threadfence_block"}
        for node in ast.walk(self.kernel):
            if isinstance(node, ast.Call) and first < node.lineno < last and ast.unparse(node.func) in weaker:
                return f"`{ast.unparse(node)}` in line {node.lineno} {weaker[ast.unparse(node.func)]}. "
        return ""

    def _cure(self):
        site, other = self.site, self.other
        parted = site.line == other.line and site.kind != other.kind and site.text != other.text
        if self.spin:
            return self._cure_of_spin(self.spin)
        if self.missing == WAIT:
            return f"Put `cuda.syncwarp()` after the wait, before line {site.line}, or let all lanes wait."
        if self.missing == FENCE:
            cure = f"Put `cuda.threadfence()` after line {other.line}, before the atomic that signals other blocks"
            return f"{cure}, and another {self._after_the_lock()}." if self.locks else f"{cure}."
        if self.missing == LOCK_FENCE:
            return f"Put `cuda.threadfence()` {self._after_the_lock()}."
        if self.is_plain_release:
            return self._cure_of_plain_release()
        if self.across and (tells := self._telling_atomic()):
            return (
                f"Put `cuda.syncthreads()` between line {other.line} and line {tells.line}: the atomic there "
                "signals other blocks, and its thread must first have waited for the others of its block."
            )
        if self.missing == WARP and self.across:
            return (
                f"Put `cuda.syncthreads()` after line {other.line}, before one thread signals other blocks: the "
                "signal covers only that thread, and its whole block once all have met."
            )
        if self.missing == WARP:
            where = (
                f"after the wait for the copy of line {other.line}" if self.is_copied else f"after line {other.line}"
            )
            return (
                f"Put `cuda.syncwarp()` {where}, before one thread signals other warps: the signal covers only that "
                "thread, and its whole warp once all have met."
            )
        if update := self._atomic_update():
            return f"Add in one step: `{update}`."
        loaded = self._beside_atomic()
        if loaded and self._decides_whether_to_update(loaded):
            return f"Read it by an atomic, too: `{_read_by_atomic(loaded)}` in place of `{loaded.text}`."
        barrier = self._barrier()
        if barrier is None:
            return self._cure_between_blocks(parted)
        stores = [s for s in (other, site) if s.kind == "store"]
        if not self.across and stores and self._index_is_loaded(stores[0]) and (atomic := self._in_one_step(stores[0])):
            return f"Compare and store in one step, {atomic}."
        if self.is_copied and not parted and site.kind == "load":
            return f"Put {barrier} after the wait for the copy of line {other.line}, before line {site.line}."
        if self.in_next_iteration and site.line == other.line:
            loop = self._enclosing(LOOPS)
            return (
                f"Put {barrier} at the end of the body of the loop in line {loop.lineno}{self._outside_branch(site)}."
            )
        if parted:
            around = self._enclosing(ast.If)
            outside = f", outside of the `if` in line {around.lineno}" if around and not self.across else ""
            return f"Split the line: read into a variable, let all threads wait at {barrier}{outside}, then write."
        if site.line == other.line:
            return self._cure_of_one_element()
        if {site.kind, other.kind} == {"store"} and site.space == "global":
            return f"Let only one of lines {other.line} and {site.line} store to it: check the index in both."
        if self.in_next_iteration and not self.across and (after := self._barrier_after_loop()):
            return (
                f"The barrier in line {after[0]} stands after the loop of line {after[1]}: move it into that loop, to "
                "the end of its body."
            )
        if self.in_next_iteration:
            back = f"before the loop returns to line {site.line}"
            return f"Put {barrier} after line {other.line}, {back}{self._outside_branch(other)}."
        if branches := self._if_with_a_branch_each():
            return (
                f"No barrier can stand between two branches of the `if` in line {branches.lineno}: make them two `if` "
                f"statements with {barrier} between, outside of both."
            )
        first, last = sorted((site.line, other.line))
        cure = f"ut {barrier} between line {first} and line {last}{self._outside_branch(site, other)}."
        if {site.kind, other.kind} == {"store"} and not self._sets_constant(first):
            return (
                f"With a barrier, too, line {last} would replace what line {first} stored: are the indices of both "
                f"the ones that you mean? If so, p{cure}"
            )
        return f"P{cure}"

    def _sets_constant(self, line):
        """Return whether a line stores numbers alone, which others are meant to replace."""
        values = [n.value for n in ast.walk(self.kernel) if isinstance(n, ast.Assign) and n.lineno == line]
        return bool(values) and all(
            isinstance(v.args[0] if isinstance(v, ast.Call) and len(v.args) == 1 else v, ast.Constant) for v in values
        )

    def _barrier_after_loop(self) -> tuple[int, int] | None:
        """Return the lines of a barrier that follows the loop around both accesses, and of the loop."""
        loop = self._enclosing(LOOPS)
        for node in ast.walk(self.kernel):
            for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
                if isinstance(body, list) and loop in body[:-1]:
                    after = body[body.index(loop) + 1]
                    is_barrier = isinstance(after, ast.Expr) and ast.unparse(after) == "cuda.syncthreads()"
                    return (after.lineno, loop.lineno) if is_barrier else None
        return None

    def _cure_between_blocks(self, parted):
        """Return the cure where no barrier can be: a second array, an atomic, or other elements."""
        in_any_order = "Blocks of one launch run in any order"
        stores = [s for s in (self.other, self.site) if s.kind == "store"]
        reads = [s for s in (self.other, self.site) if s.kind == "load"]
        if stores and (atomic := self._in_one_step(stores[0])):
            return f"{in_any_order}: compare and store in one step, {atomic}."
        if barrier := self._barrier_of_block():
            line, loop = barrier
            rest = (
                "launch the kernel once per iteration of the loop" if loop else "let another launch do what follows it"
            )
            return (
                f"`cuda.syncthreads()` in line {line} waits for the threads of one block, and blocks run in any order: "
                f"{rest}, or wait for all blocks with `cuda.cg.this_grid().sync()`."
            )
        if loaded := self._beside_atomic():
            return (
                f"{in_any_order}: read it by `{_read_by_atomic(loaded)}` if it may still change after that, or in "
                "another launch if it must be final."
            )
        if parted or (stores and reads and not self._index_is_loaded(stores[0])):
            return f"{in_any_order}: write the results to a second array, which the next launch reads."
        return (
            f"{in_any_order} and cannot wait for one another: give each block elements of its own, or use "
            "`cuda.atomic`."
        )

    def _cure_of_one_element(self):
        """Return the cure of a store by several threads at once, from how their index comes about."""
        subscript = _parse(self.site.text)
        if not isinstance(subscript, ast.Subscript):
            return "Give each thread an element of its own, or use `cuda.atomic`."
        origins = origins_of(self.kernel, subscript.slice, self.site.line)
        for node in [n for value in (subscript.slice, *(o.value for o in origins)) for n in ast.walk(value)]:
            match node:
                case ast.BinOp(number, ast.FloorDiv(), ast.Constant(int(threads))):
                    return (
                        f"`{ast.unparse(node)}` is the same in {threads} threads: let one of them store, "
                        f"`if {ast.unparse(ast.BinOp(number, ast.Mod(), ast.Constant(threads)))} == 0:`, or use "
                        "`cuda.atomic`."
                    )
        axes = subscript.slice.elts if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
        alone = {axis.id for axis in axes if isinstance(axis, ast.Name)}  # their values are the same in both threads
        computed = [o for o in origins if o.name in alone and not ast.unparse(o.value).startswith("cuda.")]
        if computed:
            last = max(computed, key=lambda origin: origin.line)
            return (
                f"Both have the same `{last.name}`: let line {last.line}, `{last.text}`, give each thread another, or "
                "use `cuda.atomic`."
            )
        if origins:
            index = ", ".join(map(ast.unparse, axes))
            return f"The index `{index}` is the same in both: let it give each thread its own, or use `cuda.atomic`."
        return "Give each thread an element of its own, or use `cuda.atomic`."

    def _beside_atomic(self) -> Site | None:
        """Return the plain read of an element that the other access updates by an atomic; None if it is not that."""
        by_kind = {self.site.kind: self.site, self.other.kind: self.other}
        loaded = by_kind.get("load") if by_kind.keys() == {"load", "atomic"} else None
        return loaded if loaded and isinstance(_parse(loaded.text), ast.Subscript) else None

    def _decides_whether_to_update(self, loaded):
        """Return whether a read stands in the condition of an `if` around the atomic."""
        atomic = self.site if loaded is self.other else self.other
        return any(
            _contains_line(node.test, loaded.line) and loaded.text in ast.unparse(node.test)
            for node in ast.walk(self.kernel)
            if isinstance(node, ast.If) and any(_contains_line(statement, atomic.line) for statement in node.body)
        )

    def _in_one_step(self, store):
        """Return the atomic in place of a comparison and a store, and how to read the array then; "" for none."""
        found = _atomic_in_place_of(self.kernel, store, self.is_integer)
        if not found:
            return ""
        test, atomic = found
        elsewhere = [s for s in self.sites if s.array == store.array and s.kind == "load" and s.line != test]
        return f"`{atomic}`{_by_atomics(elsewhere)}"

    def _atomic_update(self):
        """Return the atomic in place of `x[i] += value`, if both accesses are of that statement; else ""."""
        site, other = self.site, self.other
        if (site.line, site.text) != (other.line, other.text) or site.dtype not in ADDED_BY_ATOMICS:
            return ""
        for node in ast.walk(self.kernel):
            match node:
                case ast.AugAssign(ast.Subscript() as target, ast.Add() | ast.Sub() as sign, value):
                    pass
                case ast.Assign([ast.Subscript() as target], ast.BinOp(same, ast.Add() | ast.Sub() as sign, value)) if (
                    ast.unparse(same) == ast.unparse(target)
                ):
                    pass
                case _:
                    continue
            if node.lineno == site.line and ast.unparse(target) == site.text:
                name = "add" if isinstance(sign, ast.Add) else "sub"
                return f"cuda.atomic.{name}({_arguments(target)}, {ast.unparse(value)})"
        return ""

    def _barrier_of_block(self):
        """Return the line of a block's barrier between the accesses, and whether that is one of a loop around both."""
        loop = self._enclosing(LOOPS)
        first, last = sorted((self.site.line, self.other.line))
        calls = (n for n in ast.walk(loop or self.kernel) if isinstance(n, ast.Call))
        lines = [n.lineno for n in calls if ast.unparse(n.func) == "cuda.syncthreads"]
        between = [line for line in lines if loop or first < line < last]
        return (between[0], loop is not None) if between else None

    def _index_is_loaded(self, site):
        """Return whether an element of an array decides which element is accessed."""
        indices = [n.slice for n in ast.walk(_parse(site.text)) if isinstance(n, ast.Subscript)]
        names, known = _names(*indices), set()
        while names:
            known |= names
            assigned = [
                n.value
                for n in ast.walk(self.kernel)
                if isinstance(n, ast.Assign)
                and _names(*n.targets) & names
                and not isinstance(n.targets[0], ast.Subscript)
            ]
            if any(isinstance(n, ast.Subscript) for value in assigned for n in ast.walk(value)):
                return True
            names = _names(*assigned) - known
        return False

    def _cure_of_spin(self, spin):
        subscript = _parse(spin.text)
        name, index = ast.unparse(subscript.value), ast.unparse(subscript.slice)
        return (
            f"Use atomics for what one thread waits for and another sets: read it by "
            f"`cuda.atomic.add({name}, {index}, 0)`, set it by `cuda.atomic.exch({name}, {index}, ...)`, and put "
            "`cuda.threadfence()` before that if it signals that other data are ready."
        )

    def _after_the_lock(self) -> str:
        lines = " or ".join(map(str, sorted({line for _, line in self.locks})))
        return f"after line {lines}, where the lock is taken"

    def _cure_of_plain_release(self):
        store = next(s for s in (self.site, self.other) if s.kind == "store")
        stores = [n for n in ast.walk(self.kernel) if isinstance(n, ast.Assign) and n.lineno == store.line]
        value = ast.unparse(stores[0].value) if stores else "..."
        return (
            f"Release the lock by `cuda.atomic.exch({_arguments(_parse(store.text))}, {value})`, with "
            "`cuda.threadfence()` before it."
        )

    def _telling_atomic(self) -> Site | None:
        """Return the atomic between the two lines that tells other blocks of the earlier access."""
        between = [s for s in self.sites if s.kind == "atomic" and self.other.line < s.line < self.site.line]
        return min(between, key=lambda s: s.line) if self.is_informed and between else None

    def _barrier(self) -> str | None:
        """Return the barrier at which the two threads could meet, as the kernel would write it."""
        if not self.across:
            return "`cuda.syncthreads()`"
        calls = (n for n in ast.walk(self.kernel) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
        return next((f"`{ast.unparse(call)}`" for call in calls if call.func.attr == "sync"), None)

    def _if_with_a_branch_each(self) -> ast.If | None:
        """Return the `if` that has one access in its body, and the other in its `elif` or `else`; else None."""
        lines = {self.site.line, self.other.line}
        for node in ast.walk(self.kernel):
            if isinstance(node, ast.If):
                branches = [
                    {line for line in lines for statement in branch if _contains_line(statement, line)}
                    for branch in (node.body, node.orelse)
                ]
                if all(branches) and set.union(*branches) == lines and len(lines) == 2:
                    return node
        return None

    def _outside_branch(self, *near: Site) -> str:
        """Return a clause for a barrier that must be outside the `if` around only one of the two lines."""
        for node in ast.walk(self._enclosing(LOOPS) or self.kernel):
            if isinstance(node, ast.If):
                inside = {line for line in (self.site.line, self.other.line) if _contains_line(node, line)}
                if len(inside) == 1 and inside <= {s.line for s in near}:
                    return f", outside of the `if` in line {node.lineno}"
        return ""

    def _enclosing(self, kinds):
        """Return the innermost statement of these kinds around both accesses."""
        lines = (self.site.line, self.other.line)
        enclosing = [
            n for n in ast.walk(self.kernel) if isinstance(n, kinds) and all(_contains_line(n, line) for line in lines)
        ]
        return max(enclosing, key=lambda n: n.lineno) if enclosing else None


ADDED_BY_ATOMICS = {"int32", "uint32", "int64", "uint64", "float32", "float64"}
COMPARED = {ast.Lt: "min", ast.LtE: "min", ast.Gt: "max", ast.GtE: "max"}


def _atomic_in_place_of(kernel, site, is_integer):
    """Return the line of `if value < x[i]: x[i] = value`, or `if x[i] == old: x[i] = new`, and the atomic it means.

    `site` is the store; None if it stands in no such branch.
    """
    for node in ast.walk(kernel):
        if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare) or len(node.test.ops) > 1:
            continue
        stores = [n for n in node.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == site.text]
        if site.line not in {n.lineno for n in stores}:
            continue
        operator = node.test.ops[0]
        left, right = ast.unparse(node.test.left), ast.unparse(node.test.comparators[0])
        element, value = _arguments(stores[0].targets[0]), ast.unparse(stores[0].value)
        if (left, right) == (value, site.text) and type(operator) in COMPARED:
            return node.lineno, f"cuda.atomic.{COMPARED[type(operator)]}({element}, {value})"
        if is_integer and isinstance(operator, ast.Eq) and site.text in (left, right):
            old = right if left == site.text else left
            return node.lineno, f"cuda.atomic.cas({element}, {old}, {value})"
    return None


def stands_before_signal(kernel: ast.FunctionDef, line: int) -> bool:
    """Return whether the call in a line stands in an `if`, between a store and an atomic whose result is used."""
    for node in ast.walk(kernel):
        for before, call, after in zip(*(node.body[i:] for i in range(3))) if isinstance(node, ast.If) else ():
            if call.lineno == line:
                is_store = isinstance(before, ast.Assign) and isinstance(before.targets[0], ast.Subscript)
                return is_store and isinstance(after, ast.Assign) and "cuda.atomic." in ast.unparse(after.value)
    return False


def _by_atomics(loads):
    """Return a clause that says how the loads of an array that atomics change must read it."""
    how = {}  # by line
    for load in loads:
        how[load.line] = f"line {load.line} by `{_read_by_atomic(load)}`"
    return f", and read {loads[0].array} in {', '.join(how.values())}" if how else ""


def _read_by_atomic(load):
    """Return the atomic that reads what a load reads, and changes nothing."""
    return f"cuda.atomic.add({_arguments(_parse(load.text))}, 0)"


def _arguments(subscript):
    """Return an array and an index as an atomic takes them."""
    return f"{ast.unparse(subscript.value)}, {ast.unparse(subscript.slice)}"


def _names(*nodes):
    """Return the variables in expressions."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _contains_line(node, line):
    """Return whether a statement contains a line."""
    return node.lineno <= line <= node.end_lineno


@lru_cache(maxsize=16)
def _places_of_spins(kernel):
    """Return (line, column) of the elements in conditions of loops that wait for another thread."""
    tests = [n.test for n in ast.walk(kernel) if isinstance(n, ast.While) and is_spin(n)]
    return {(n.lineno, n.col_offset) for test in tests for n in ast.walk(test) if isinstance(n, ast.Subscript)}


def _parse(text):
    return ast.parse(text, mode="eval").body
