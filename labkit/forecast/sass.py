"""The machine code of a kernel beside its source: what the compiler made of each line, and how often that runs.

    code = sass.compiled(tiled, A, B, C, compute_capability=(9, 0))
    code.registers, code.spill_bytes
    code.beside(trace)          # a row for each line and kind of access: source, SASS, and the factor between them

The simulator counts what the source asks for; the compiler merges loads, keeps values in registers and unrolls loops.
How often a piece of machine code runs is estimated from its loops: in a piece that holds a line's arithmetic, stores or
atomics four times over, one pass does four of the line's, and the trace knows how many of those there are. Counters of
the hardware play no part in it, so that they can be held against the result.

Compiling needs numba-cuda and `ptxas`; disassembling needs `nvdisasm`; neither needs a GPU.
"""

import ast
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit.trace import WARP_LANES, Trace

BROUGHT_BY = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}

# What an instruction accesses, by the first part of its name (CUDA Binary Utilities, "Instruction Set Reference").
ACCESSES = {
    "LDG": "global load", "STG": "global store", "LDGSTS": "global load",
    "ATOM": "global atomic", "ATOMG": "global atomic", "RED": "global atomic", "REDG": "global atomic",
    "LDS": "shared load", "STS": "shared store", "ATOMS": "shared atomic",
    "LDL": "local load", "STL": "local store",
}  # fmt: skip
NEVER_MERGED = ("FLOPs", "global store", "shared store", "global atomic", "shared atomic")
FLOPS = {"FADD": 1, "FMUL": 1, "FFMA": 2, "DADD": 1, "DMUL": 1, "DFMA": 2}


class SassError(RuntimeError):
    """A tool that is missing, or code that it does not take."""


@dataclass(frozen=True)
class Instruction:
    """One machine instruction: its address in bytes, its name with all its parts, and the source line it serves."""

    address: int
    name: str
    line: int | None
    block: int

    @property
    def opcode(self) -> str:
        return self.name.partition(".")[0]

    def does(self, kind: str) -> int:
        """How much of a kind it does: one access, such as a "shared load", or some FLOPs of each lane."""
        return FLOPS.get(self.opcode, 0) if kind == "FLOPs" else int(ACCESSES.get(self.opcode) == kind)


@dataclass(frozen=True)
class Row:
    """One line of the source and one thing that it asks for, such as "shared load".

    `requested` is how often warps ask for it in the source, `executed` how often in the machine code, and
    `instructions` how many there are of each kind. Of "FLOPs" both are warps' operations: an FFMA does two. `factor`
    is executed over requested: 0.625 says that the machine makes five accesses for eight of the source's. It is None
    where the number of passes cannot be told.
    """

    line: int
    text: str
    kind: str
    requested: int
    executed: float | None
    instructions: Counter

    @property
    def factor(self) -> float | None:
        return None if self.executed is None or not self.requested else self.executed / self.requested


@dataclass(frozen=True)
class Sass:
    """A kernel's machine code. `loops` are (first, last) addresses, one for each backward jump."""

    instructions: tuple[Instruction, ...]
    loops: tuple[tuple[int, int], ...]
    registers: int | None = None
    spill_bytes: int | None = None

    def beside(self, trace: Trace) -> list[Row]:
        """A row for each line and what it asks for, in the order of lines."""
        passes = self.passes(trace)
        lines = trace.source.splitlines()
        asked = defaultdict(list)
        for site in trace.sites:
            asked[site.site.line, f"{site.site.space} {site.site.kind}"].append(site.requests)
        for line, times in _executions(trace).items():
            if any(i.line == line and i.does("FLOPs") for i in self.instructions):
                asked[line, "FLOPs"] = [_operations(trace, line) * times]
        rows = []
        for (line, kind), requests in sorted(asked.items()):
            serving = [i for i in self.instructions if i.line == line and i.does(kind)]
            executed = None
            if all(i.block in passes for i in serving):
                # a warp whose lanes are all masked off asks for nothing: no instruction runs oftener than the source's
                executed = sum(min(passes[i.block], max(requests)) * i.does(kind) for i in serving)
            names = Counter(i.name for i in serving)
            rows.append(Row(line, lines[line - trace.first_line].strip(), kind, sum(requests), executed, names))
        return rows

    def executed(self, trace: Trace) -> float | None:
        """Warp instructions of all kinds that the launch executes, as far as the passes tell."""
        passes = self.passes(trace)
        if not all(i.block in passes for i in self.instructions):
            return None
        return sum(passes[i.block] for i in self.instructions)

    def instructions_per_iteration(self, multiply_adds: int) -> float:
        """Instructions of a warp in a round of its longest loop, in which a lane does so many multiply-adds.

        A loop within it runs as often as these ask for. Both ways of a branch count, so this is for loops without.

        Raises
        ------
        SassError
            There is no loop, or several within the longest: which of them does how much cannot be told.
        """
        size = {loop: self._within(loop) for loop in self.loops}
        longest = max(size, key=lambda loop: size[loop].total(), default=None)
        inner = [
            loop
            for loop in self.loops
            if longest and loop != longest and longest[0] <= loop[0] and loop[1] <= longest[1]
        ]
        if longest is None or len(inner) > 1:
            raise SassError("instructions of a round can be told of a loop with at most one other in it")
        repeated = size[(inner or [longest])[0]]
        around = size[longest] - repeated
        passes = (multiply_adds - around["FFMA"]) / repeated["FFMA"]
        return around.total() + passes * repeated.total()

    def passes(self, trace: Trace) -> dict[int, float]:
        """How often all warps together run each straight piece of code, where that can be told.

        A line that a trace saw executed n times, and that stands c times in one piece, needs n // c passes of it;
        what is left over falls to the next smaller copy of the line, as compilers unroll. A piece without such a line
        runs as often as the others of its loop, and one outside of all loops once in each warp.
        """
        warps = prod(trace.grid) * -(-prod(trace.block) // WARP_LANES)
        passes = {}
        for line, times in _executions(trace).items():
            for block, count in _shared_out(self._copies(trace, line), times / warps, self._loop_of):
                passes.setdefault(block, count * warps)
        of_loop: dict[tuple[int, int] | None, float] = {None: float(warps)}
        for block, count in passes.items():
            loop = self._loop_of(block)
            of_loop[loop] = max(count, of_loop.get(loop, 0)) if loop else of_loop[None]
        for block in {i.block for i in self.instructions} - passes.keys():
            if (loop := self._loop_of(block)) in of_loop:
                passes[block] = of_loop[loop]
        return passes

    def _copies(self, trace, line):
        """How many of the line's executions one pass of each piece does: by its arithmetic, stores or atomics."""
        asked = Counter(f"{s.site.space} {s.site.kind}" for s in trace.sites if s.site.line == line)
        asked["FLOPs"] = _operations(trace, line)
        for kind in NEVER_MERGED:
            done = Counter()
            for i in self.instructions:
                done[i.block] += i.does(kind) if i.line == line else 0
            if asked[kind] and done.total():
                return {block: count / asked[kind] for block, count in done.items() if count}
        return {}

    def _within(self, loop):
        """The instructions of a loop by their names, those of loops within it too."""
        return Counter(i.opcode for i in self.instructions if loop[0] <= i.address <= loop[1])

    def _loop_of(self, block):
        """The innermost loop around a piece of code, which is named by its first address."""
        around = [(first, last) for first, last in self.loops if first <= block <= last]
        return max(around, default=None)


def compiled(kernel, *arguments, compute_capability: tuple = (9, 0)) -> Sass:
    """Compiles a kernel for GPUs of a compute capability, and reads what came of it.

    Parameters
    ----------
    kernel
        What `cuda.jit` returned, or the Python function itself.
    *arguments
        As for a launch; their types alone matter.
    compute_capability
        Such as (9, 0) for an H100, or (9, 0, "a") with the instructions that it alone has.

    Raises
    ------
    SassError
        numba-cuda or a tool is missing, and the message says what brings it.
    """
    if find_spec("numba_cuda") is None:
        raise SassError("compiling needs numba-cuda: `pip install numba-cuda` brings it")
    # of numba-cuda; the checker looks in numba's own, older `cuda`
    from numba.cuda.typing.typeof import Purpose, typeof  # pyright: ignore[reportMissingImports]

    from labkit.cuda.compiling import ptx_text

    types = tuple(typeof(argument, Purpose.argument) for argument in arguments)
    try:
        ptx = ptx_text(kernel, types, compute_capability, lineinfo=True)
    except ImportError as error:
        raise SassError("compiling needs NVVM of the CUDA toolkit: `pip install nvidia-nvvm` brings it") from error
    with TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        architecture = f"sm_{''.join(map(str, compute_capability))}"
        said = _run("ptxas", "-v", "-lineinfo", f"-arch={architecture}", source, "-o", result).stderr
        registers = int(re.findall(r"Used (\d+) registers", said)[0])
        spills = sum(map(int, re.findall(r"(\d+) bytes spill (?:stores|loads)", said)))
        return of_cubin(result.read_bytes(), registers, spills)


def of_cubin(cubin: bytes, registers: int | None = None, spill_bytes: int | None = None) -> Sass:
    """Reads the machine code of one kernel, such as numba has of a launch on a GPU (compiled with `lineinfo=True`)."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        return parsed(_run("nvdisasm", "-g", "-c", path).stdout, registers, spill_bytes)


def parsed(text: str, registers: int | None = None, spill_bytes: int | None = None) -> Sass:
    """Reads what `nvdisasm -g -c` says of a kernel."""
    if len(re.findall(r"^\s*\.section\s+\.text", text, re.M)) != 1:
        raise SassError("this is not one kernel with its functions inlined: take `inline='never'` and recursion out")
    instructions, jumps, labels, waiting = [], [], {}, []
    line, block, opens = None, 0, True
    for row in text.splitlines():
        if found := re.match(r"\s*//## File .*, line (\d+)", row):
            line = int(found[1])
        elif found := re.match(r"(\.L_x_\d+):", row):
            waiting.append(found[1])
            opens = True
        elif found := re.match(r"\s*/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*);", row):
            address, name, rest = int(found[1], 16), found[2], found[3]
            block = address if opens else block
            opens = name.partition(".")[0] in ("BRA", "EXIT", "RET", "BRX", "JMP")
            labels |= dict.fromkeys(waiting, address)
            waiting = []
            if name == "NOP":
                continue
            instructions.append(Instruction(address, name, line, block))
            if target := re.search(r"\((\.L_x_\d+)\)", rest) if name.startswith("BRA") else None:
                jumps.append((target[1], address))
    loops = [(labels[target], at) for target, at in jumps if target in labels and labels[target] < at]
    return Sass(tuple(instructions), tuple(loops), registers, spill_bytes)


def tool(name: str) -> str | None:
    """Where a tool of the CUDA toolkit is: on the PATH, or in a wheel."""
    wheels = find_spec("nvidia")
    roots = wheels.submodule_search_locations or [] if wheels else []
    found = [path for root in roots for path in sorted(Path(root).glob(f"*/bin/{name}*"))]
    return shutil.which(name) or (str(found[0]) if found else None)


def _run(name, *arguments):
    path = tool(name)
    if path is None:
        raise SassError(f"`{name}` of the CUDA toolkit is not here: `pip install {BROUGHT_BY[name]}` brings it")
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SassError(f"{name} refused the code: {done.stderr.strip()}")
    return done


def _executions(trace):
    """How often warps executed each line that accesses memory."""
    times = defaultdict(int)
    for site in trace.sites:
        times[site.site.line] = max(times[site.site.line], site.requests)
    return times


def _operations(trace, line):
    """Floating-point additions, subtractions and multiplications that one execution of a line asks for, 0 if unsure."""
    count, unsure = 0, False
    waiting = [ast.parse(trace.source)]
    while waiting:
        node = waiting.pop()
        here = getattr(node, "lineno", 0) + trace.first_line - 1 == line
        if here and isinstance(node, ast.BinOp | ast.AugAssign):
            count += isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
            unsure |= not isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
        unsure |= here and isinstance(node, ast.Call)
        index = node.slice if isinstance(node, ast.Subscript) else None  # its arithmetic is on integers
        waiting += [child for child in ast.iter_child_nodes(node) if child is not index]
    return 0 if unsure else count


def _shared_out(copies, times, loop_of):
    """Passes of each piece of code that holds a line, the one with the most copies first."""
    for block, count in sorted(copies.items(), key=lambda item: -item[1]):
        passes = times // count if count > 1 else times / count
        passes = passes if loop_of(block) else min(passes, 1)
        times -= passes * count
        yield block, passes
