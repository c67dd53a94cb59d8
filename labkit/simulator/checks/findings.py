"""Findings of a run, in a learner's words: what happened, its effect on a GPU, and a fix."""

from dataclasses import dataclass, field, replace

import numpy as np

from labkit.simulator.checks import races
from labkit.simulator.checks.bounds_cures import cure_outside, name_in_kernel
from labkit.simulator.checks.fill_cures import cure_unwritten
from labkit.simulator.checks.in_flight import CURE_OF_A_RING
from labkit.simulator.checks.launch_scope import scope_at
from labkit.simulator.checks.race_cures import Race, stands_before_signal
from labkit.simulator.checks.random_cures import cure_of_shared_state
from labkit.simulator.checks.same_memory import cure_of_same_memory
from labkit.simulator.checks.skips import find_skip
from labkit.simulator.checks.strides import cure_of_shared_elements
from labkit.simulator.warps import WARPGROUP_WARPS, WarpSet
from labkit.trace import WARP_LANES, Finding, ThreadId

IN_ONE_PLACE = ("The guard in line", "The loop in line")  # how the cure of several accesses begins


@dataclass
class Log:
    """Findings of a run, by kind and line: the first of each is reported, the others are counted.

    Each method named after an error notes that error. `w` is the warp set that runs, `site_number` the access at fault
    (in `Launch.sites`), and `mask` has the lanes that make it.
    """

    launch: object
    found: dict[tuple, dict] = field(default_factory=dict)
    warps_race: bool = False  # whether two warps of one block race anywhere
    broken_lock: tuple | None = None  # the key of the race for a lock that is given back by a plain store

    def add(self, key, count=1, kind="", message="", *, severity="error", site=None, **finding):
        """Note a finding, at the line and column of `site` if given; one whose key is known is only counted."""
        if not self.count_repeat(key, count):
            position = {"line": site.line, "column": site.column} if site else {}
            fields = {"kind": kind, "severity": severity, "message": message, "count": int(count)}
            self.found[key] = {**fields, **position, **finding}

    def count_repeat(self, key, count=1) -> bool:
        """Return whether this key has been noted; if so, count the finding again."""
        if key in self.found:
            self.found[key]["count"] += int(count)  # which is NumPy's where numba is not installed
            return True
        return False

    def finished(self) -> list[Finding]:
        """Return the findings of the run."""
        found = [Finding(**finding) for finding in self.found.values()]
        if self.broken_lock:  # which explains why blocks race for what it should protect
            lock = Finding(**self.found[self.broken_lock])
            found = [f for f in found if f == lock or not f.is_between_blocks]
        findings = self._one_for_each_cause(found)
        return findings if self.warps_race else [self._with_barrier_of_warp(f) for f in findings]

    def _one_for_each_cause(self, findings):
        """Return the findings without those that have the cause of another.

        That is a race of blocks with the same cure for the same array, one inside a block with the same cure at the
        same lines, and one inside a block at the lines where blocks race, too. It is also a read of unwritten memory
        with the same cure for the same array, and an index that the same guard or loop lets through.
        """
        kept, cures = [], {}
        between_blocks = [f for f in findings if f.is_between_blocks]
        lines = {(f.array, *sorted((f.line, f.other_line))) for f in between_blocks}
        for finding in findings:
            cause = None
            if finding.kind == "race":
                place = finding.array, *sorted((finding.line, finding.other_line))
                if not finding.is_between_blocks and place in lines:
                    continue
                cause = (finding.array,) if finding.is_between_blocks else place
            elif finding.kind == "uninitialised" or finding.remedy.startswith(IN_ONE_PLACE):
                cause = finding.kind, finding.array
            if cause and cures.setdefault((*cause, finding.remedy), finding) is not finding:
                continue
            kept.append(finding)
        return kept

    def _with_barrier_of_warp(self, finding):
        """Return the finding; a race among lanes of one warp, where no warps race, gets a warp barrier as its fix."""
        if finding.kind != "race" or finding.is_between_blocks:
            return finding
        barrier = "`cuda.syncwarp()`"
        if self.launch.warps_per_block == 1:
            barrier += " (`cuda.syncthreads()` if blocks are to have more warps)"
        cure = finding.remedy.replace("`cuda.syncthreads()`", barrier)
        return replace(finding, remedy=cure, message=f"{finding.fact} {cure}")

    def thread(self, block: int, thread: int) -> ThreadId:
        """Return the thread with these linear numbers; a tensor core counts as the first thread of its warpgroup."""
        warpgroup = thread // WARP_LANES - self.launch.warps_per_block  # tensor cores are numbered after all warps
        thread = thread if warpgroup < 0 else warpgroup * WARPGROUP_WARPS * WARP_LANES
        return ThreadId(_index(block, self.launch.grid), _index(thread, self.launch.block))

    def lane(self, w: WarpSet, lane: int) -> ThreadId:
        """Return the thread in a lane."""
        return self.thread(int(w.block[lane]), int(w.thread[lane]))

    def name(self, thread: ThreadId) -> str:
        """Return a thread's name in this launch."""
        return thread.named(self.launch.grid, self.launch.block)

    # --- accesses ---

    def _add_access(self, key, count, message, site, array, position, threads, **fields):
        """Note a finding about an element; its key begins with its kind."""
        self.add(key, count, key[0], message, site=site, array=array.name, index=position, threads=threads, **fields)

    def _first_lane(self, w, mask, index):
        """Return the first lane of a mask, and the array index that it uses."""
        lane = int(np.argmax(w.active(mask)))
        return lane, tuple(int(i[lane]) if isinstance(i, np.ndarray) else int(i) for i in index)

    def out_of_bounds(self, w, site_number, array, mask, index):
        """Note an index outside the array."""
        site = self.launch.sites[site_number]
        key = ("bounds", site.line, site.column, site.kind)
        if self.count_repeat(key, w.count(mask)):
            return
        lane, position = self._first_lane(w, mask, index)
        shape = array.shape_in(lane)
        axis = next(a for a, (i, n) in enumerate(zip(position, shape)) if not -n <= i < n)
        thread = self.lane(w, lane)
        element = f"{array.name}{_index_text(position)}"
        if array.root is not array:
            element = f"element {_index_text(position)} of a slice of {array.name}"
        cure = cure_outside(self.launch, site, array, shape, axis, position, index, w.active(mask))
        message = (
            f"Line {site.line}: {self.name(thread)} {_verb(site)} {element}, but {name_in_kernel(site, array)} has "
            f"{_shape_text(shape)}. On a GPU it {_effect_outside(site)}. {cure}"
        )
        self._add_access(key, w.count(mask), message, site, array, position, (thread,), remedy=cure)

    def before_array(self, w, site_number, array, mask, index, axis):
        """Note a negative index in an instruction that does not count it from the end."""
        site = self.launch.sites[site_number]
        key = ("bounds", site.line, site.column, site.kind)
        if self.count_repeat(key, w.count(mask)):
            return
        lane, position = self._first_lane(w, mask, index)
        thread = self.lane(w, lane)
        cure = f"Give it an index from 0 on, such as {array.shape_in(lane)[axis] + position[axis]}."
        message = (
            f"Line {site.line}: {self.name(thread)} {_verb(site)} {array.name}{_index_text(position)}. "
            "Unlike a subscript, this instruction does not count a negative index from the end: it reaches memory "
            f"before the array, and on a GPU it {_effect_outside(site)}. {cure}"
        )
        self._add_access(key, w.count(mask), message, site, array, position, (thread,), remedy=cure)

    def misaligned(self, w, site_number, array, mask, index, byte, width_bytes):
        """Note a vector access of `width_bytes` whose first byte, `byte` in each lane, is not aligned."""
        site = self.launch.sites[site_number]
        key = ("misaligned", site.line, site.column, site.kind)
        if self.count_repeat(key, w.count(mask)):
            return
        lane, position = self._first_lane(w, mask, index)
        thread = self.lane(w, lane)
        elements = width_bytes // array.itemsize
        where = f"which is byte {byte[lane]} of {array.space} memory"
        cure = f"Let each thread begin at a multiple of {elements} elements, in rows of a multiple of {elements}."
        if array.alignment < width_bytes:
            where = f"and {array.name} may begin at any multiple of {array.alignment} bytes"
            cure = f"Pass `alignment={width_bytes}` where {array.name} is made."
        elif array.address % width_bytes:
            cure = f"Slice the device array that {array.name} is taken from at a multiple of {elements} elements."
        message = (
            f"Line {site.line}: {self.name(thread)} {_verb(site)} {elements} elements at once from "
            f"{array.name}{_index_text(position)} on, {where}, but an access of {width_bytes} bytes must begin at a "
            f"multiple of {width_bytes}: on a GPU it stops the launch. {cure}"
        )
        self._add_access(key, w.count(mask), message, site, array, position, (thread,), remedy=cure)

    def in_flight(self, w, site_number, array, flat, mask, operation, beginner):
        """Note an access to what an asynchronous `operation`, begun by (block, thread) `beginner`, still works on."""
        site, begun = self.launch.sites[site_number], self.launch.sites[operation.site]
        key = ("in-flight", site.line, site.column, site.kind, begun.line)
        if self.count_repeat(key, w.count(mask)):
            return
        lane = int(np.argmax(mask))
        thread, other = self.lane(w, lane), self.thread(*beginner)
        within = int(flat[lane]) % array.elements if array.space == "shared" else int(flat[lane])
        position = array.position(array.c_order(within))
        element, earlier = f"{array.name}{_index_text(position)}", f"{operation.name} that {self.name(other)} began"
        if operation.site == site_number and array.space == "shared":
            cure = CURE_OF_A_RING
            what = f"begins a copy to {element} before {earlier} there in an earlier iteration has arrived"
        else:
            explained = operation.explain(w, array, int(flat[lane]), beginner) if operation.explain else ""
            cure = explained or operation.cure
            what = (
                f"{_verb(site)} {element} before {earlier} in line {begun.line} "
                f"{'has read it' if operation.reads else 'has arrived there'}"
            )
        message = f"Line {site.line}: {self.name(thread)} {what}. {_effect_too_early(site, operation)}. {cure}"
        self._add_access(
            key, w.count(mask), message, site, array, position, (thread, other), remedy=cure, other_line=begun.line
        )

    def negative_index(self, w, site_number, array, mask, index, axis):
        """Advise against a negative index, which counts from the end."""
        site = self.launch.sites[site_number]
        key = ("negative-index", site.line, site.column)
        if self.count_repeat(key, w.count(mask)):
            return
        lane, position = self._first_lane(w, mask, index)
        thread = self.lane(w, lane)
        cure = "Guard the index unless you mean that."
        message = (
            f"Line {site.line}: {self.name(thread)} {_verb(site)} {array.name}{_index_text(position)}. numba counts a "
            f"negative index from the end, as Python does, so this is element {position[axis] + array.shape[axis]} "
            f"and raises no error. {cure}"
        )
        self._add_access(key, w.count(mask), message, site, array, position, (thread,), severity="advice", remedy=cure)

    def uninitialised(self, w, site_number, array, flat, lane, count):
        """Note a read of an element that nothing has written."""
        site = self.launch.sites[site_number]
        key = ("uninitialised", site.line, site.column)
        if self.count_repeat(key, count):
            return
        thread = self.lane(w, int(lane))
        position = array.position(array.c_order(int(flat) % array.elements if array.space == "shared" else int(flat)))
        cure = self.launch.program.cure_unwritten(self.launch, site) or cure_unwritten(self.launch, site, array.root)
        message = (
            f"Line {site.line}: {self.name(thread)} reads {array.name}{_index_text(position)}, which nothing has "
            f"written. {array.space.capitalize()} memory starts with whatever was there before, so the result can "
            f"change from run to run. {cure}"
        )
        self._add_access(key, count, message, site, array, position, (thread,), remedy=cure)

    def unassigned(self, w, mask, name, line, column):
        """Note a read of a variable that the thread has not assigned."""
        key = ("unassigned", name, line)
        if self.count_repeat(key, w.count(mask)):
            return
        thread = self.lane(w, int(np.argmax(w.active(mask))))
        cure = f"Give `{name}` a value before the `if` or the loop that sets it."
        message = (
            f"Line {line}: {self.name(thread)} reads `{name}`, but nothing was assigned to it on the path of this "
            f"thread, so on a GPU its value is undefined. {cure}"
        )
        self.add(key, w.count(mask), "uninitialised", message, line=line, column=column, threads=(thread,), remedy=cure)

    def zero_division(self, w, mask, sign, line, column, is_complex):
        """Note a division by zero."""
        key = ("zero-division", line, column)
        if self.count_repeat(key, w.count(mask)):
            return
        thread = self.lane(w, int(np.argmax(mask)))
        what = "the thread silently ends there" if is_complex else "numba's GPU code goes on with 0"
        cure = "Guard the division with an `if`."
        message = f"Line {line}: {self.name(thread)} divides by zero with `{sign}`. No GPU reports that: {what}. {cure}"
        self.add(key, w.count(mask), "zero-division", message, line=line, column=column, threads=(thread,), remedy=cure)

    def race(self, w, site_number, array, found):
        """Note `found` races of one instruction, of which the launch has kept one."""
        sites = self.launch.sites
        cell, block, thread, other_block, other_thread, other_site, missing = map(int, self.launch.noted_race)
        element = array.shadow.element(cell)
        site, other = sites[site_number], sites[other_site]
        lines = sorted((site.line, other.line))
        across = block != other_block
        self.warps_race |= not across and thread // WARP_LANES != other_thread // WARP_LANES
        is_informed = missing == races.WARP or self.launch.clocks.heard_from_other_warp(
            block, thread, other_block, other_thread
        )
        copied = self.launch.program.is_copy(other_site)
        race = Race(
            kernel=self.launch.source.tree, sites=sites, site=site, other=other, lockstep=w.chunk.alone, across=across,
            is_informed=is_informed and across, missing=missing, is_integer=array.dtype.kind in "iu", is_copied=copied,
            locks=frozenset(self.launch.program.locks),
            is_too_early=("uninitialised", other.line, other.column) in self.found,
        )  # fmt: skip
        kinds = (site.kind, other.kind)
        if across or race.spin:  # either might have come first
            kinds = sorted(kinds)
        key = ("race", array.name, *lines, *kinds, across, missing)
        if self.count_repeat(key, found):
            return
        thread_id, other_id = self.thread(block, thread), self.thread(other_block, other_thread)
        position = array.position(array.c_order(element % array.elements if array.space == "shared" else element))
        name = f"{array.name}{_index_text(position)}"
        it = "it" if other.array == array.name else f"{other.array}, which begins at the same byte,"
        again = " in the next iteration of the loop" * race.in_next_iteration
        cure = (
            cure_of_same_memory(self.launch, site.array, other.array)
            or cure_of_shared_state(self.launch, site)
            or cure_of_shared_elements(scope_at(self.launch, site.line), site, other)
            or (self.launch.warps_per_block > 1 and missing == races.UNORDERED and self.launch.program.cure_race(race))
            or race.cure()
        )
        self.broken_lock = self.broken_lock or (key if race.is_plain_release else None)
        message = (
            f"Race on {name}: {self.name(thread_id)} {_verb(site)} it at line {site.line} (`{site.text}`){again}, and "
            f"{self.name(other_id)} {_verb(other)} {it} at line {other.line} (`{other.text}`). {race.how}, so "
            f"{_effect_of_race(site, other)}. {cure}"
        )
        self._add_access(
            key, found, message, site, array, position, (thread_id, other_id), remedy=cure, other_line=other.line
        )

    @property
    def read_undefined(self) -> bool:
        """True if a lane got an undefined value from a shuffle."""
        return any(finding["kind"] == "shuffle" for finding in self.found.values())

    def drop_undefined(self):
        """Remove the findings of undefined values, after a check that nothing depends on them."""
        self.found = {key: finding for key, finding in self.found.items() if finding["kind"] != "shuffle"}

    # --- waiting ---

    def _add_wait(self, key, message, line, threads, **fields):
        """Note a finding about the wait in a line; its key begins with its kind."""
        column = self.launch.program.wait_columns[line]
        self.add(key, 1, key[0], message, line=line, column=column, threads=threads, **fields)

    def barrier(self, line, waiting, missing, other_line=None):
        """Note a barrier that one thread waits at and another does not reach; both are (block, thread) pairs."""
        key = ("barrier", line, other_line)
        if self.count_repeat(key):
            return
        waiter, absent = self.thread(*waiting), self.thread(*missing)
        whom = self.name(absent)
        if other_line:
            what = f"waits at the barrier in line {line} while {whom} waits at another one, in line {other_line}"
        else:
            what = f"waits at the barrier in line {line}, but {whom} never reaches it"
        cure = (
            "Every thread of a block must reach the same `cuda.syncthreads()`: move it out of the `if` or the loop "
            "that only some threads run."
        )
        if other_line is None and (skip := find_skip(self.launch.source.tree, line)):
            cure = (
                f"The `{skip.word}` in line {skip.line} leaves out the barrier in some threads{skip.told}. Let all "
                f"threads of a block decide alike in line {skip.test_line}, or leave out the work between barriers "
                "alone."
            )
        if other_line is None and stands_before_signal(self.launch.source.tree, line):
            cure = (
                "A barrier orders nothing for other blocks: before an atomic that signals them, what was written is "
                "made visible by `cuda.threadfence()`."
            )
        message = (
            f"Line {line}: {self.name(waiter)} {what}. On a GPU the block can hang, or continue before its data are "
            f"there. {cure}"
        )
        self._add_wait(key, message, line, (waiter, absent), other_line=other_line, remedy=cure)

    def grid_barrier(self, line, waiting, missing):
        """Note a grid barrier that one thread waits at and another does not reach; both are (block, thread) pairs."""
        key = ("barrier", line)
        if self.count_repeat(key):
            return
        waiter, absent = self.thread(*waiting), self.thread(*missing)
        cure = "Every thread of the grid must reach the same `sync()`: move it out of the `if` around it."
        message = (
            f"Line {line}: {self.name(waiter)} waits for the whole grid in line {line}, but {self.name(absent)} never "
            f"reaches it. On a GPU this launch would hang. {cure}"
        )
        self._add_wait(key, message, line, (waiter, absent), remedy=cure)

    def deadlock(self, line, stuck, other=None, other_line=None, reason="", other_reason="", known_cure=""):
        """Note that `stuck` waits at `line` forever, for `reason`, and `other`, if any, at `other_line`."""
        key = ("deadlock", line)
        if self.count_repeat(key):
            return
        waiter = self.thread(*stuck)
        also, threads = "", (waiter,)
        cure = "every thread that could end it has ended, or waits there too: let it act before."
        if other is not None:
            cure = "let the thread that is waited for act before it waits itself."
            other_waiter = self.thread(*other)
            also = f". Meanwhile {self.name(other_waiter)} waits at line {other_line}{other_reason}"
            threads = (waiter, other_waiter)
        ends = f". {known_cure}" if known_cure else f"; {cure}"
        cure = known_cure or cure
        message = (
            f"Deadlock: {self.name(waiter)} waits at line {line}{reason}{also}. No thread that still runs can "
            f"end the wait. On a GPU this launch would hang{ends}"
        )
        self._add_wait(key, message, line, threads, other_line=other_line, remedy=cure)


def _index(linear, shape):
    """Return the (x, y, z) index of a linear number."""
    x, y, _ = shape
    return (linear % x, linear // x % y, linear // (x * y))


def _effect_of_race(site, other):
    kinds = {site.kind, other.kind}
    if "load" in kinds:
        return "what is read can be the old value or the new one"
    return "the update can be lost" if "atomic" in kinds else "either value can be the one that stays"


def _effect_too_early(site, operation):
    if operation.reads:
        return "It can pick up some of the new values"
    if site.kind == "load":
        return "What is read can be old, new or some of each"
    return "Either value can be the one that stays"


def _effect_outside(site):
    return "gets whatever is stored there" if site.kind == "load" else "overwrites other data"


def _verb(site):
    return {"load": "reads", "store": "writes", "atomic": "updates"}[site.kind]


def _index_text(position):
    return f"[{', '.join(map(str, position))}]"


def _shape_text(shape):
    return f"{shape[0]} element{'s' * (shape[0] != 1)}" if len(shape) == 1 else f"shape ({', '.join(map(str, shape))})"
