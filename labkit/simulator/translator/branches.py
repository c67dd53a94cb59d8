"""Branches and loops: masks of the lanes that take them, and the types where paths meet."""

import ast

from labkit.simulator import limits
from labkit.simulator.reading.syntax import changing_variables, contains, is_spin, may_jump, never_ends, walk
from labkit.simulator.translator.control_flow import has_grid_barrier, may_block, may_wait
from labkit.simulator.translator.homes import region_of
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import MISSING, Tuple, Value


class Branches(Variables):
    """`if`, `for`, `while`, `break` and `continue`."""

    def do_If(self, node):
        test = self.condition(node.test)
        self.flush_flops()
        if test.static is not MISSING:
            # numba prunes branches on constants; the dead one is not typed
            chosen = node.body if test.static else node.orelse
            part = "body" if test.static else "orelse"
            outer = self.mask
            inner = self.name("m")
            self.emit(f"{inner} = {outer}")
            exits = self.exits
            with self.in_region(region_of(node, part), inner):
                self.statements(chosen)
            if may_jump(chosen) or self.exits > exits:
                self.emit(f"{outer} = {inner}")
            return
        outer = self.mask
        yes, no = self.name("m"), self.name("m")
        self.emit(f"{yes}, {no} = split({outer}, {test.code})")
        self.guard_fork(node, [*node.body, *node.orelse], yes, outer)
        before, assigned = dict(self.env), set(self.assigned)
        ends, sure = [], []
        for part, mask, body in (("body", yes, node.body), ("orelse", no, node.orelse)):
            self.env, self.assigned, self.reachable = dict(before), set(assigned), True
            if body:
                with self.block(f"if {mask} is not False:"):
                    if self.program.watch:
                        self.emit_watch_as(mask, node.lineno)
                    with self.in_region(region_of(node, part), mask):
                        self.statements(body)
            if self.reachable:
                ends.append(self.env)
                sure.append(self.assigned)
        self.reachable = bool(ends)
        self.env = self.merge(ends, node) if ends else before
        self.assigned = set.intersection(*sure) if sure else assigned
        if may_jump(node.body) or may_jump(node.orelse):
            self.emit(f"{outer} = union({yes}, {no})")

    def guard_fork(self, node, body, entering, outer):
        """Ask the scheduler for separate sets of warps where they would diverge around a wait in the node's body."""
        if not may_block(self.function, self.program.waiting):
            return
        if node not in self.waits:
            spins = any(isinstance(n, ast.While) and is_spin(n) for s in body for n in walk(s))
            waits = spins or may_wait(body, self.names, self.program.waiting)
            self.waits[node] = waits, spins or waits and has_grid_barrier(body, self.names, self.program.meeting)
        waits, spins = self.waits[node]
        if waits:
            self.emit(f"w.chunk.guard(w, {entering}, {outer}, {spins})")

    def loop(self, node, header, enter):
        """Walk a loop body from the types that the last walk ended with; `header` opens the loop.

        `enter` writes the beginning of an iteration, and returns the condition's value where numba knows it.
        """
        outer, region = self.mask, region_of(node, "body")
        looping, inner, broken = self.name("l"), self.name("m"), self.name("b")
        self.emit(f"{looping} = {outer}")
        self.emit(f"{broken} = False")
        head, assigned = (
            self.joined_types(self.env, self.loop_head_types.get(self.copy_of(node), {}), node),
            set(self.assigned),
        )
        self.env = dict(head)
        loop = {"broken": broken, "break_envs": [], "continue_envs": []}
        self.loops.append(loop)
        exits = self.exits
        with self.block(header):
            indent = self.indent
            with self.in_region(region, inner):
                tick = len(self.lines)
                self.emit("")
                runs = enter(looping, inner)
                self.guard_fork(node, [node], inner, outer)
                if runs:  # or MISSING, which is true; numba does not type a body that never runs
                    self.statements(node.body)
            self.indent = indent
            end_envs = [*[self.env] * self.reachable, *loop["continue_envs"]]
            back = self.merge(end_envs, node) if end_envs else dict(head)
            self.reachable = runs is MISSING or not runs  # by its condition a loop may end
            if contains(node.body, ast.Break, ast.Return) or self.exits > exits:
                self.emit(f"{looping} = minus(minus({looping}, {broken}), gone)")
                self.emit(f"if {looping} is False: break")
            if isinstance(node, ast.While) and is_spin(node):
                changing = "".join(f"{self.storage_name(n, head[n])}, " for n in changing_variables(node) if n in head)
                self.emit(f"yield ({self.wait_line(node)}, {looping}, ({changing}))")
            work = limits.work_of(self.lines[tick:])
            self.lines[tick] = "    " * self.indent + f"w.tick({node.lineno}, {work})"
        self.loops.pop()
        wider_head = self.joined_types(head, back, node)
        if wider_head != head:
            self.loop_head_types[self.copy_of(node)] = wider_head
            self.unstable_loop = node
        # until types settle, numba leaves a `for` by its head; a `while`, whose test CPython repeats, by its end too
        by_head = self.unstable_loop and isinstance(node, ast.For)
        self.env = {**back, **head} if by_head else self.merge([{**back, **head}, back], node)
        self.assigned = assigned
        if node.orelse and self.reachable:
            self.loop_else(node, broken)
        self.env = self.merge([*[self.env] * self.reachable, *loop["break_envs"]] or [self.env], node)
        self.reachable = self.reachable or bool(loop["break_envs"])
        if contains(node.body, ast.Return):
            self.emit(f"{outer} = minus({outer}, gone)")

    def joined_types(self, env, other, node):
        """Return the environment, with its variables' types joined with those of another."""
        wider = {n: self.joined_type(n, env[n], kind, node) for n, kind in other.items() if env.get(n, kind) != kind}
        late = {n: other[n] for n in self.assigned_elsewhere & other.keys() - env.keys()}
        return {**env, **wider, **late}

    def loop_else(self, node, broken):
        """Translate the `else` of a loop, for the lanes that did not `break`."""
        outer, mask, entered = self.mask, self.name("m"), self.name("m")
        self.emit(f"{mask} = {entered} = minus(minus({outer}, {broken}), gone)")
        assigned = set(self.assigned)
        with self.block(f"if {mask} is not False:"), self.in_region(region_of(node, "orelse"), mask):
            self.statements(node.orelse)
        self.assigned = assigned
        if may_jump(node.orelse):
            self.emit(f"{outer} = union(minus({outer}, {entered}), {mask})")

    def do_For(self, node):
        if isinstance(node.iter, ast.Call) and self.dotted(node.iter.func) == "numba.literal_unroll":
            self.unrolled(node)
            return
        iteration = self.iteration(node.iter)
        span, value, lanes_left = self.name("r"), self.name(), self.name("c")
        self.flush_flops()
        head, exits = len(self.lines), self.exits
        self.emit(f"{span} = lane_range({self.mask}, {iteration.low}, {iteration.high}, {iteration.step})")

        def enter(looping, inner):
            self.emit(f"{inner} = {looping} if {lanes_left} is None else intersect({looping}, {lanes_left})")
            self.emit(f"if {inner} is False: break")
            self.assign(node.target, iteration.value(Value(value, iteration.kind)), node)
            if self.program.watch:
                self.emit_watch(node.lineno)
            return MISSING

        self.loop(node, f"for {value}, {lanes_left} in {span}:", enter)
        if self.exits == exits and not contains(node.body, ast.Break, ast.Return):
            self.lines[head] = self.lines[head].removesuffix(")") + f", w, {node.lineno})"

    def unrolled(self, node):
        """Translate `for x in literal_unroll(t)`: the body once per value of a tuple, whose types may differ."""
        values = self.expression(node.iter.args[0])
        if not isinstance(values.type, Tuple) or contains(node.body, ast.Break, ast.Continue):
            self.fail(node, "`literal_unroll` takes a tuple, and its loop no `break` and no `continue`")
        outer, self.has_unrolled = self.unrolling, True
        for i, kind in enumerate(values.type.items):
            self.unrolling = (*outer, i)
            self.assign(node.target, Value(f"{values.code}[{i}]", kind), node)
            self.statements(node.body)
        self.unrolling = outer

    def do_While(self, node):
        if is_spin(node):
            self.program.spins = True
            self.flush_flops()
            self.emit(f"if w.is_lane: yield ({self.wait_line(node)}, {self.mask}, ())")  # others come this far, too

        def enter(looping, inner):
            self.emit(f"{inner} = {looping}")
            indent, exits = self.indent, self.exits
            test = self.condition(node.test)
            if self.exits > exits:
                self.indent = indent
                self.emit(f"if {inner} is False: break")
            if test.static and never_ends(node):  # MISSING is true
                self.fail(
                    node,
                    f"`while {self.written(node.test)}` never ends: nothing inside the loop changes its condition or "
                    "leaves it; change a variable of the condition, or `break`",
                )
            self.flush_flops()
            self.emit(f"{looping} = {inner} = intersect({inner}, {test.code})")
            self.emit(f"if {inner} is False: break")
            if self.program.watch:
                self.emit_watch(node.lineno)
            return test.static

        self.loop(node, "while True:", enter)

    def do_Break(self, node):
        loop = self.loops[-1]
        loop["break_envs"].append(dict(self.env))
        self.emit(f"{loop['broken']} = union({loop['broken']}, {self.mask})")
        self.emit(f"{self.mask} = False")
        self.reachable = False

    def do_Continue(self, node):
        self.loops[-1]["continue_envs"].append(dict(self.env))
        self.emit(f"{self.mask} = False")
        self.reachable = False
