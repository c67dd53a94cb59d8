"""Writes a random kernel: the uses that it must hold, in random control flow and arithmetic, always inside bounds.

Some things are left out because numba has no single result to compare with. Products of variables that are a bool on
one path and a float32 on another get a type that depends on the order of numba's inference. Variables that change their
type in the test of a `while`, which Python's compiler writes twice, have one type on entry and another on the way back.
Variables are not set to a bare literal either: numba prunes branches on those, and the simulator types both sides.
Floats are not compared with `%`, which a GPU computes from a rounded quotient.

Wherever the writer chooses, the first choice is the plainest, which is where hypothesis shrinks to.
"""

import re
from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.simulator import numba_types
from labkit.simulator.language import FUNCTIONS
from random_kernels.tolerance import EXACT, Tolerance
from random_kernels.uses import HALVES, KINDS, Use

GRID, BLOCK = 2, 64
THREADS = GRID * BLOCK
LENGTH = 16
SHAPES = {1: (LENGTH,), 2: (LENGTH, 3), 3: (LENGTH, 3, 2)}
OUTPUTS = {1: (THREADS,), 2: (THREADS, 2), 3: (THREADS, 2, 1)}
VARIABLES = ("a", "b", "c", "d")
STARTS = (
    "i + 0", "i + 1", "i - 9", "i * 0.5", "int32(7)", "uint8(250)", "float32(1.5)", "float64(0.25)", "int64(i * i)",
    "uint32(40000)", "int8(100)", "float32(i)",
)  # fmt: skip
CASTS = ("int32", "int64", "uint8", "float32", "float64", "int16", "uint32")
FILLED = ("uint8", "int32", "int64", "float32", "float64")  # what the random arithmetic reads


HEADER_NAMES = {path for path in FUNCTIONS if re.search(r"\.(bf|fp)16\.__", path)}


@dataclass(frozen=True)
class RandomKernel:
    """A kernel's source, and how it is launched and judged.

    `cell` defines `kernel`, and the device functions before it with `@device`; `parameters` are its arguments by
    name, `kept` says of each column of the outputs `oi`, `of`, `oc` how far two right answers may lie apart.
    `thread` is a function of one thread with the same statements, where numba can compile it for a CPU; `plain` says
    that there is nothing but the uses in it.
    """

    cell: str
    thread: str | None
    parameters: dict[str, np.ndarray]
    constants: dict[str, np.ndarray]
    kept: dict[str, list[Tolerance]]
    plain: bool


class Writer:
    """Writes one kernel; `rng` chooses. `device_alone` says that the kernel may hold what only a GPU has."""

    BLOCK = BLOCK

    def __init__(self, rng, uses: list[Use], device_alone: bool):
        self.rng = rng
        self.pending = list(uses)
        self.device_alone = device_alone
        self.lines, self.head, self.functions = [], [], []
        self.depth = 1
        self.loops = 0
        self.names = 0
        self.together = True  # do all threads of the block come here?
        self.parameters, self.constants_used = {}, {}
        self.kept = {"oi": [], "of": [], "oc": []}

    # --- what the uses ask for ---

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def new(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def choose(self, options):
        return self.rng.choice(options)

    def cast(self, kind) -> str:
        return {"bool": "bool_", "bfloat16": "cuda.bf16.bfloat16"}.get(str(kind), str(kind))

    def callable(self, path) -> str:
        """A function's name in a cell; `bf16_header` and `fp16_header` hold those of CUDA's headers."""
        module, _, name = path.rpartition(".")
        _, _, short = module.rpartition(".")
        return f"{short}_header.{name}" if path in HEADER_NAMES else path

    def value(self, kind) -> str:
        """An expression of this type."""
        return self._element("x", kind)

    def small(self, kind) -> str:
        """An expression of this type, from 1 to 5, or from 0.25 to 3."""
        return self._element("p", kind)

    def _element(self, family, kind):
        if kind == numba_types.bfloat16:
            return f"cuda.bf16.bfloat16({self._element(family, types.float32)})"
        return f"{self._input(family, kind, 1)}[{self.place()}]"

    def array(self, kind, rank) -> str:
        return self._input("xyz"[rank - 1], kind, rank)

    def _input(self, family, kind, rank):
        name = f"{family}_{kind}"
        self.parameters.setdefault(name, values(family, kind, SHAPES[rank]))
        return name

    def output(self, kind, rank) -> str:
        name = f"o{rank}_{kind}"
        self.parameters.setdefault(name, np.zeros(OUTPUTS[rank], numba_types.stored_dtype(kind)))
        return name

    def counters(self, kind) -> str:
        """An array for one atomic."""
        name = f"n{len(self.parameters)}_{kind}"
        self.parameters[name] = np.full(THREADS, 3, numba_types.stored_dtype(kind))
        return name

    def constants(self, kind) -> str:
        name = f"c_{kind}"
        if f"C_{kind}" not in self.constants_used:
            self.constants_used[f"C_{kind}"] = values("x", kind, SHAPES[1])
            self.head.append(f"{name} = cuda.const.array_like(C_{kind})")
        return name

    def allocate(self, space, kind, length) -> str:
        name = f"{space[0]}{len(self.head)}"
        self.head.append(f"{name} = cuda.{space}.array({length}, {self.cast(kind)})")
        return name

    def dynamic(self, kind) -> str:
        """Dynamic shared memory, of which all arrays begin at the same byte."""
        return self.allocate("shared", kind, 0)

    def function(self, parameters, body) -> str:
        name = f"device{len(self.functions)}"
        self.functions.append(f"@device\ndef {name}({parameters}):\n{body}\n")
        return name

    def keep(self, name, kind, within=EXACT):
        """Stores the number, or each number of a tuple, into a column of the outputs that nothing else writes."""
        if isinstance(kind, types.BaseTuple):
            for position, item in enumerate(kind):
                self.keep(f"{name}[{position}]", item, within)
            return
        real = isinstance(kind, types.Float) or kind == numba_types.bfloat16
        output = "oc" if isinstance(kind, types.Complex) else "of" if real else "oi"
        column = len(self.kept[output])
        self.kept[output].append(within)
        self.line(f"{output}[i, {column}] = {f'float32({name})' if kind in HALVES else name}")

    # --- the kernel ---

    def kernel(self) -> RandomKernel:
        for name in VARIABLES:
            self.line(f"{name} = {self.choose(STARTS)}")
        plain = not self.rng.randrange(100)
        if not plain:
            self.block(most=3)
        while self.pending:
            self.use()
        for name in VARIABLES:
            self.keep(f"float64({name})", types.float64)
        if self.device_alone:
            self.line("cuda.syncthreads()")
        body = "\n".join(self.lines) + "\n"
        for name, kept in self.kept.items():
            dtype = {"oi": np.int64, "of": np.float64, "oc": np.complex128}[name]
            self.parameters[name] = np.zeros((THREADS, len(kept) + 1), dtype)
        names = ", ".join(self.parameters)
        functions = "\n".join(self.functions) + "\n" * bool(self.functions)
        head = "".join(f"    {line}\n" for line in ("i = cuda.grid(1)", "t = cuda.threadIdx.x", *self.head))
        cell = f"{functions}@cuda.jit\ndef kernel({names}):\n{head}{body}"
        thread = None if self.device_alone else f"{functions}def thread(i, t, {names}):\n{body}"
        return RandomKernel(cell, thread, self.parameters, self.constants_used, self.kept, plain)

    def use(self):
        """Writes the next of the pending uses that may stand here, if there is one."""
        for position, use in enumerate(self.pending):
            if self.together or use.where != "block":
                del self.pending[position]
                use.write(self, *use.arguments)
                return

    # --- statements ---

    def statement(self):
        kinds = ["use"] * 3 + ["assign"] * 3 + ["augment"] * 2 + ["swap"]
        if self.depth < 4:
            kinds += ["if"] * 3 + ["for"] * 2 + ["while"]
        if self.device_alone and self.together and self.depth < 4:
            kinds += ["whole_blocks", "all_repeat", "whole_warps"]
        if self.depth > 1 and not self.device_alone:
            kinds += ["return"]
        if self.loops:
            kinds += ["break", "continue"]
        kind = self.choose(kinds)
        (self.use if kind == "use" else getattr(self, f"write_{kind}"))()

    def block(self, most=2):
        mark = len(self.lines)
        for _ in range(self.rng.randint(1, most)):
            self.statement()
        if len(self.lines) == mark:
            self.line("pass")

    def nested(self, header, together=False):
        """A compound statement, into which all threads go together or some of them."""
        before, self.together = self.together, self.together and together
        self.line(header)
        self.depth += 1
        self.block()
        self.depth -= 1
        self.together = before

    def write_assign(self):
        value = self.number(2)
        fixed = not any(c.isalpha() for c in value)
        self.line(f"{self.variable()} = {value}{' * i' * fixed}")

    def write_augment(self):
        self.line(f"{self.variable()} {self.choose(('+=', '-=', '*='))} {self.number(1)}")

    def write_swap(self):
        first, second = self.rng.sample(VARIABLES, 2)
        self.line(f"{first}, {second} = {second}, {first}")

    def write_if(self):
        self.nested(f"if {self.condition(2)}:")
        if self.rng.random() > 0.7:
            self.nested(f"elif {self.condition(1)}:")
        if self.rng.random() > 0.5:
            self.nested("else:")

    def write_for(self):
        bounds = self.choose(
            (
                "3",
                "i % 3",
                f"{self.index()} % 4",
                f"{self.index()} % 3, 5",
                f"1, {self.index()} % 7, 2",
                f"4, {self.index()} % 4, -1",
            )
        )
        self.inside_loop(f"for {self.new()} in range({bounds}):")
        if self.rng.random() > 0.7:
            self.nested("else:")

    def write_while(self):
        counter = self.new()
        self.line(f"{counter} = {self.choose(('i - i', 'i % 3', 'int32(1)'))}")
        limit = self.choose(("3", "i % 5", f"4 and {self.whole(1)} < {self.index()}"))
        self.inside_loop(f"while {counter} < {limit}:", f"{counter} += {self.choose(('1', '2', 'int32(1)'))}")

    def inside_loop(self, header, *first):
        before, self.together = self.together, False
        self.line(header)
        self.depth += 1
        self.loops += 1
        for text in first:
            self.line(text)
        self.block()
        self.loops -= 1
        self.depth -= 1
        self.together = before

    def write_break(self):
        self.line(f"if {self.condition(1)}:")
        self.line("    break")

    def write_continue(self):
        self.line(f"if {self.condition(1)}:")
        self.line("    continue")

    def write_return(self):
        """A few threads are done; the others go on to what follows."""
        self.line(f"if i % 5 == {self.choose('0123')}:")
        self.line("    return")

    def write_whole_blocks(self):
        self.nested(f"if cuda.blockIdx.x {self.choose(('== 0', '!= 0', '< 2'))}:", together=True)

    def write_all_repeat(self):
        self.nested(f"for {self.new()} in range({self.choose(('2', 'cuda.blockIdx.x + 1'))}):", together=True)

    def write_whole_warps(self):
        """A branch that whole warps take, and a value that goes around in each of them."""
        self.line(f"if t {self.choose(('< 32', '>= 32'))}:")
        name = self.new()
        self.line("    cuda.syncwarp()")
        self.line(f"    {name} = cuda.shfl_down_sync(0xFFFFFFFF, i * 3, 5)")
        self.line(f"    {self.variable()} = {name} + i")
        self.line("cuda.syncthreads()")

    # --- expressions of numbers, whose types are left to numba ---

    def variable(self):
        return self.choose(VARIABLES)

    def filled(self):
        return self.choose([f"{self._input('x', KINDS[name], 1)}[{self.place()}]" for name in FILLED])

    def index(self):
        """A whole number that is not negative."""
        return self.choose(("i", "(i + 3)", f"int64({self._input('x', types.uint8, 1)}[{self.place()}])"))

    def place(self):
        return self.choose((f"i % {LENGTH}", "3", f"(i * 7) % {LENGTH}", f"(i + 5) % {LENGTH}"))

    def atom(self):
        return self.choose(
            (
                "i", self.variable(), self.variable(), self.variable(), "2", "0.5", "float32(0.5)", "-3", "int32(5)",
                "math.pi", self.filled(), "2 ** -3", "(i + (1 << 33))",
            )
        )  # fmt: skip

    def number(self, depth):
        if depth == 0:
            return self.atom()
        form = self.rng.randrange(9)
        a, b = self.number(depth - 1), self.number(depth - 1)
        if form == 0:
            return a
        if form < 5:
            return f"({a} {self.choose('+-*')} {b})"
        if form == 5:
            return f"({a} if {self.condition(0)} else {b})"
        if form == 6:
            return self.whole(depth)
        if form == 7:
            return self.choose((f"abs({a})", f"(-{a})", f"math.sqrt(abs({a}))", f"({a} / 4)", f"({a} ** 2)"))
        kind = self.choose(CASTS)
        return f"{kind}(min(max({a}, {0 if kind.startswith('u') else -100}), 100))"

    def whole(self, depth):
        """Arithmetic of integers alone."""
        a, b = self.index(), self.index()
        return self.choose(
            (
                f"({a} & {b})", f"({a} // ({b} % 5 + 1))", f"({a} % ({b} % 5 + 1))", f"({a} | {b})", f"({a} ^ {b})",
                f"(~{a})", f"({a} << ({b} & 7))", f"({a} >> ({b} & 7))", f"({a} // -3)", f"({a} % -3)",
            )
        )  # fmt: skip

    def condition(self, depth):
        if depth == 0 or self.rng.random() < 0.4:
            sign = self.choose(("<", "<=", ">", ">=", "==", "!="))
            return f"{self.number(min(depth, 1))} {sign} {self.variable()}"
        form = self.rng.randrange(5)
        a, b = self.condition(depth - 1), self.condition(depth - 1)
        if form < 2:
            return f"({a} {('and', 'or')[form]} {b})"
        if form == 2:
            return f"not ({a})"
        if form == 3:
            return f"{self.atom()} < {self.variable()} <= {self.atom()}"
        return self.variable()


def values(family, kind, shape) -> np.ndarray:
    """Numbers of a type: small positive ones ("p"), or any."""
    dtype = numba_types.stored_dtype(kind)
    rng = np.random.default_rng([len(shape), *str(kind).encode()])
    if kind == types.boolean:
        return rng.integers(0, 2, shape).astype(dtype) if family != "p" else np.ones(shape, dtype)
    if isinstance(kind, types.Integer):
        low, high = {"int32": (-50, 50), "int64": (-9, 10)}.get(str(kind), limits(dtype))
        return rng.integers(1, 6, shape).astype(dtype) if family == "p" else rng.integers(low, high, shape, dtype)
    if isinstance(kind, types.Complex):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return (rng.uniform(0.25, 3, shape) if family == "p" else rng.uniform(-3, 3, shape)).astype(dtype)


def limits(dtype):
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def random_kernel(rng, uses) -> RandomKernel:
    """A random kernel that holds these uses; it can run as one thread on a CPU if all of them can."""
    return Writer(rng, uses, any(use.where != "thread" for use in uses)).kernel()
