"""Small random kernels: what `simulate` says of races is held against what the orders of `explore` lead to.

Where two orders end differently there must be a race (or a deadlock) that `simulate` tells of.
"""

from itertools import product
from random import Random

import numpy as np
import pytest
from cells import kernel_in

import labkit

KERNELS = 40  # for each seed
ORDERS = 60
VALUES = ("7", "{step} + 50", "t + 100 * b + {step} * 1000")
STATEMENTS = {
    "load": "seen[{step}, b, t // 32] = {array}[{element}]",
    "store": "{array}[{element}] = {value}",
    "atomic": "cuda.atomic.{atomic}",
}
ATOMICS = (  # each changes nothing by coming before or after another of its kind
    "add({array}, {element}, 1 + t + 10 * b)",
    "max({array}, {element}, {limit})",
    "cas({array}, {element}, 0, 5)",
)
SIGNAL = "cuda.threadfence()\n        cuda.atomic.add(flags, {flag}, 1)"
WAIT = "while cuda.atomic.add(flags, {flag}, 0) < {count}:\n            pass\n        cuda.threadfence()"
HEAD = """
@cuda.jit
def racy(total, seen, flags):
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    s = cuda.shared.array(2, int32)
    grid = cuda.cg.this_grid()
    if t < 2:
        s[t] = 0
    cuda.syncthreads()
"""


class RandomKernel:
    """The text of a kernel whose warps load, store and update a few elements, with barriers and flags between."""

    def __init__(self, random: Random, flags: bool):
        self.random, self.flags = random, flags
        self.blocks, self.warps = random.choice([(1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (3, 1), (4, 1)])
        self.signalled = [0, 0]  # how often each flag is, before the statement that comes next
        self.awaited = set()  # flags that are waited for: all of their signals, so that every order knows as much
        self.meets = random.random() < 0.25
        self.atomics = {place: random.choice(ATOMICS) for place in product(("total", "s"), (0, 1))}
        steps = range(random.randint(3, 7))
        self.text = HEAD.lstrip("\n") + "".join(f"    {self.statement(step)}\n" for step in steps)
        if not self.meets:
            self.text = self.text.replace("    grid = cuda.cg.this_grid()\n", "")

    def statement(self, step) -> str:
        kind = self.random.random()
        if kind < 0.15:
            return "cuda.syncthreads()"
        if self.meets and kind < 0.3:
            return "grid.sync()"
        who, warps = self.who()
        if self.flags and self.random.random() < 0.45:
            return f"if {who}:\n        {self.flag(warps)}"
        array, element = self.random.choice(["total", "total", "s"]), self.random.choice([0, 0, 1])
        names = dict(step=step, array=array, element=element)
        names["value"] = self.random.choice(VALUES).format(step=step)
        names["atomic"] = self.atomics[array, element].format(**names, limit=self.random.choice(["3", "t + b", "500"]))
        kind = self.random.choice(["load", "store", "atomic"])
        return f"if {who}:\n        {STATEMENTS[kind].format(**names)}"

    def who(self) -> tuple[str, int]:
        """A condition on the thread, and how many warps of the launch it lets in."""
        conditions, warps = ["t % 32 == 0"], self.blocks * self.warps
        for name, count in (("b", self.blocks), ("t // 32", self.warps)):
            if count > 1 and self.random.random() < 0.65:
                sign = self.random.choice(["==", "==", "!="])
                conditions.append(f"{name} {sign} {self.random.randrange(count)}")
                warps = warps // count * (1 if sign == "==" else count - 1)
        return " and ".join(conditions), warps

    def flag(self, warps) -> str:
        flag = self.random.randrange(2)
        if flag in self.awaited or self.signalled[flag] and self.random.random() < 0.5:
            self.awaited.add(flag)
            return WAIT.format(flag=flag, count=self.signalled[flag])
        self.signalled[flag] += warps
        return SIGNAL.format(flag=flag)

    def arguments(self):
        return np.zeros(2, np.int32), np.full((7, 4, 4), -1, np.int32), np.zeros(2, np.int32)


@pytest.mark.parametrize("flags", [False, True], ids=["plain", "with flags"])
@pytest.mark.parametrize("seed", range(2))
def test_orders_that_end_differently_are_a_race(seed, flags):
    random = Random(f"{seed} {flags}")
    for _ in range(KERNELS):
        made = RandomKernel(random, flags)
        launch = kernel_in(made.text), made.blocks, 32 * made.warps, *made.arguments()
        told = [f for f in labkit.simulate(*launch).errors if f.kind != "unwritten"]
        if not told:
            explored = labkit.explore(*launch, orders=ORDERS)
            assert len(explored.outcomes) == 1, f"{made.blocks} blocks of {made.warps} warps:\n{made.text}"
