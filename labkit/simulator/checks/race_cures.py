"""Causes of races and their fixes, in a learner's words, from the lines of the accesses in the source."""

import ast
from dataclasses import dataclass

from labkit.simulator.checks.races import FENCE, WARP
from labkit.simulator.reading.syntax import is_spin
from labkit.trace import Site

LOOPS = (ast.For, ast.While)


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
    missing: int  # what would order the two: FENCE (a `threadfence`), WARP (a warp barrier) or, of `races`, UNORDERED
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
        tests = [n.test for n in ast.walk(self.kernel) if isinstance(n, ast.While) and is_spin(n)]
        subscripts = (n for test in tests for n in ast.walk(test) if isinstance(n, ast.Subscript))
        positions = {(n.lineno, n.col_offset) for n in subscripts}
        both = (self.site, self.other)
        read = (s for s in both if s.kind == "load" and (s.line, s.column) in positions)
        return next((s for s in read if isinstance(_parse(s.text), ast.Subscript)), None)

    @property
    def how(self) -> str:
        """The reason that either access may come first, as the middle of a sentence."""
        if self.missing == WARP:
            return "and what another thread of its warp told in between does not speak for it"
        if self.missing == FENCE:
            return "and the atomic in between does not say that what was done before it can be seen"
        return "with nothing to say which comes first"

    def cure(self) -> str:
        """Return a sentence that says how to fix the race."""
        site, other = self.site, self.other
        parted = site.line == other.line and site.kind != other.kind and site.text != other.text
        if self.spin:
            return self._cure_of_spin(self.spin)
        if self.missing == FENCE:
            return f"Put `cuda.threadfence()` after line {other.line}, before the atomic that tells other blocks of it."
        if self.across and (tells := self._telling_atomic()):
            return (
                f"Put `cuda.syncthreads()` between line {other.line} and line {tells.line}: the atomic there tells "
                "other blocks what its own thread has done, which must have waited for the others of its block."
            )
        if self.missing == WARP:
            where = (
                f"behind the wait for the copy of line {other.line}" if self.is_copied else f"after line {other.line}"
            )
            return (
                f"Put `cuda.syncwarp()` {where}, before one thread tells other warps of it: that speaks for what it "
                "did itself, and for its warp once they have met."
            )
        barrier = self._barrier()
        if barrier is None and parted:
            return "Blocks of one launch run in any order: write the results to another array."
        if barrier is None:
            return (
                "Blocks of one launch run in any order and cannot wait for one another: give each block elements of "
                "its own, or use `cuda.atomic`."
            )
        if self.is_copied and not parted and site.kind == "load":
            return f"Put {barrier} behind the wait for the copy of line {other.line}, before line {site.line}."
        if self.in_next_iteration and site.line == other.line:
            loop = self._enclosing(LOOPS)
            return (
                f"Put {barrier} at the end of the body of the loop in line {loop.lineno}{self._outside_branch(site)}."
            )
        if parted:
            return f"Split the line: read into a variable, let all wait at {barrier}, and then write."
        if site.line == other.line:
            return "Give each thread an element of its own, or use `cuda.atomic`."
        if self.in_next_iteration:
            back = f"before the loop comes back to line {site.line}"
            return f"Put {barrier} after line {other.line}, {back}{self._outside_branch(other)}."
        first, last = sorted((site.line, other.line))
        return f"Put {barrier} between line {first} and line {last}{self._outside_branch(site, other)}."

    def _cure_of_spin(self, spin):
        subscript = _parse(spin.text)
        name, index = ast.unparse(subscript.value), ast.unparse(subscript.slice)
        return (
            f"What one thread waits for and another sets must be accessed by atomics: read it by "
            f"`cuda.atomic.add({name}, {index}, 0)`, set it by `cuda.atomic.exch({name}, {index}, ...)`, and put "
            "`cuda.threadfence()` before that if it tells of other data."
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


def _contains_line(node, line):
    """Return whether a statement contains a line."""
    return node.lineno <= line <= node.end_lineno


def _parse(text):
    return ast.parse(text, mode="eval").body
