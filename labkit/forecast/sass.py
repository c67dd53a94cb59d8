"""Machine code (SASS) of a kernel compared with its source: the instructions of each line, and how often they run.

    code = sass.compiled(tiled, A, B, C, compute_capability=(9, 0))
    code.registers, code.spill_bytes
    code.beside(trace)          # a row for each line and kind of access: source, SASS, and the factor between them

The simulator counts the accesses in the source; the compiler merges loads, keeps values in registers and unrolls loops.
The number of passes of a basic block is estimated from its loops: if a block has four copies of a line's arithmetic,
stores or atomics, one pass executes the line four times, and the trace has the line's count. Hardware counters are not
used, so that the result can be tested against them.

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

PIP_PACKAGES = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}

# Kind of access of an instruction, by the first part of its name (CUDA Binary Utilities, "Instruction Set Reference").
ACCESS_KINDS = {
    "LDG": "global load", "STG": "global store", "LDGSTS": "global load",
    "ATOM": "global atomic", "ATOMG": "global atomic", "RED": "global atomic", "REDG": "global atomic",
    "LDS": "shared load", "STS": "shared store", "ATOMS": "shared atomic",
    "LDL": "local load", "STL": "local store",
}  # fmt: skip
NEVER_MERGED = ("FLOPs", "global store", "shared store", "global atomic", "shared atomic")
FLOPS_PER_LANE = {"FADD": 1, "FMUL": 1, "FFMA": 2, "DADD": 1, "DMUL": 1, "DFMA": 2}


class SassError(RuntimeError):
    """A tool is missing, or refuses the code."""


@dataclass(frozen=True)
class Instruction:
    """One machine instruction: address in bytes, full name, source line, and address of its basic block."""

    address: int
    name: str
    line: int | None
    block: int

    @property
    def opcode(self) -> str:
        return self.name.partition(".")[0]

    def amount(self, kind: str) -> int:
        """Return its amount of a kind: 1 for an access, such as a "shared load", or the FLOP of each lane."""
        return FLOPS_PER_LANE.get(self.opcode, 0) if kind == "FLOPs" else int(ACCESS_KINDS.get(self.opcode) == kind)


@dataclass(frozen=True)
class Row:
    """One line of the source and one kind of work in it, such as "shared load".

    `requested` counts requests of warps in the source, `executed` those in the machine code, and `instructions` the
    instructions by name. For "FLOPs" both are operations of warps: an FFMA has two. `factor` is executed over
    requested: 0.625 means five accesses of the machine code for eight of the source. It is None if the number of passes
    is unknown.
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
    """A kernel's machine code. `loops` are (first, last) addresses, one pair per backward jump."""

    instructions: tuple[Instruction, ...]
    loops: tuple[tuple[int, int], ...]
    registers: int | None = None
    spill_bytes: int | None = None

    def beside(self, trace: Trace) -> list[Row]:
        """Return a row for each line and kind of work, in the order of lines."""
        passes = self.passes(trace)
        lines = trace.source.splitlines()
        requested = defaultdict(list)
        for site in trace.sites:
            requested[site.site.line, f"{site.site.space} {site.site.kind}"].append(site.requests)
        for line, times in _executions(trace).items():
            if any(i.line == line and i.amount("FLOPs") for i in self.instructions):
                requested[line, "FLOPs"] = [_operations(trace, line) * times]
        rows = []
        for (line, kind), requests in sorted(requested.items()):
            matching = [i for i in self.instructions if i.line == line and i.amount(kind)]
            executed = None
            if all(i.block in passes for i in matching):
                # a warp without active lanes makes no request: no instruction runs more often than the source's
                executed = sum(min(passes[i.block], max(requests)) * i.amount(kind) for i in matching)
            names = Counter(i.name for i in matching)
            rows.append(Row(line, lines[line - trace.first_line].strip(), kind, sum(requests), executed, names))
        return rows

    def executed(self, trace: Trace) -> float | None:
        """Return the number of warp instructions that the launch executes; None if some passes are unknown."""
        passes = self.passes(trace)
        if not all(i.block in passes for i in self.instructions):
            return None
        return sum(passes[i.block] for i in self.instructions)

    def instructions_per_iteration(self, multiply_adds: int) -> float:
        """Return a warp's instructions in one iteration of its longest loop, given its multiply-adds per lane.

        An inner loop repeats as often as these need. Both ways of a branch count: use it for loops without branches.

        Raises
        ------
        SassError
            There is no loop, or the longest has several inner loops, whose shares are unknown.
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
        """Return the number of passes of all warps through each basic block, where it is known.

        A line that was executed n times, and that has c copies in one block, needs n // c passes of the block; the
        remainder goes to the block with the next smaller number of copies, since compilers unroll so. A block without
        such a line runs as often as others of its loop, and a block outside of all loops once per warp.
        """
        warps = prod(trace.grid) * -(-prod(trace.block) // WARP_LANES)
        passes = {}
        for line, times in _executions(trace).items():
            for block, count in _distribute(self._copies(trace, line), times / warps, self._loop_of):
                passes.setdefault(block, count * warps)
        loop_passes: dict[tuple[int, int] | None, float] = {None: float(warps)}
        for block, count in passes.items():
            loop = self._loop_of(block)
            loop_passes[loop] = max(count, loop_passes.get(loop, 0)) if loop else loop_passes[None]
        for block in {i.block for i in self.instructions} - passes.keys():
            if (loop := self._loop_of(block)) in loop_passes:
                passes[block] = loop_passes[loop]
        return passes

    def _copies(self, trace, line):
        """Return the copies of a line in each basic block, by its arithmetic, stores or atomics."""
        requested = Counter(f"{s.site.space} {s.site.kind}" for s in trace.sites if s.site.line == line)
        requested["FLOPs"] = _operations(trace, line)
        for kind in NEVER_MERGED:
            amounts = Counter()
            for i in self.instructions:
                amounts[i.block] += i.amount(kind) if i.line == line else 0
            if requested[kind] and amounts.total():
                return {block: count / requested[kind] for block, count in amounts.items() if count}
        return {}

    def _within(self, loop):
        """Count the instructions of a loop by name, including inner loops."""
        return Counter(i.opcode for i in self.instructions if loop[0] <= i.address <= loop[1])

    def _loop_of(self, block):
        """Return the innermost loop around a basic block, given by its first address."""
        around = [(first, last) for first, last in self.loops if first <= block <= last]
        return max(around, default=None)


def compiled(kernel, *arguments, compute_capability: tuple = (9, 0)) -> Sass:
    """Compile a kernel for GPUs of a compute capability, and read its machine code.

    Parameters
    ----------
    kernel
        A kernel of `cuda.jit`, or its Python function.
    *arguments
        Arguments of a launch, of which only the types matter.
    compute_capability
        (9, 0) for an H100, or (9, 0, "a") with the instructions of this architecture only.

    Raises
    ------
    SassError
        numba-cuda or a tool is missing; the message names the package to install.
    """
    if find_spec("numba_cuda") is None:
        raise SassError("compiling needs numba-cuda: `pip install numba-cuda` brings it")
    from labkit.cuda.compiling import argument_types, ptx_text

    try:
        ptx = ptx_text(kernel, argument_types(arguments), compute_capability, lineinfo=True)
    except ImportError as error:
        raise SassError("compiling needs NVVM of the CUDA toolkit: `pip install nvidia-nvvm` brings it") from error
    with TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        architecture = f"sm_{''.join(map(str, compute_capability))}"
        log = _run_tool("ptxas", "-v", "-lineinfo", f"-arch={architecture}", source, "-o", result).stderr
        registers = int(re.findall(r"Used (\d+) registers", log)[0])
        spills = sum(map(int, re.findall(r"(\d+) bytes spill (?:stores|loads)", log)))
        return of_cubin(result.read_bytes(), registers, spills)


def of_cubin(cubin: bytes, registers: int | None = None, spill_bytes: int | None = None) -> Sass:
    """Read the machine code of one kernel, such as numba's cubin of a launch (compiled with `lineinfo=True`)."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        return parsed(_run_tool("nvdisasm", "-g", "-c", path).stdout, registers, spill_bytes)


def parsed(text: str, registers: int | None = None, spill_bytes: int | None = None) -> Sass:
    """Parse the output of `nvdisasm -g -c` for one kernel."""
    if len(re.findall(r"^\s*\.section\s+\.text", text, re.M)) != 1:
        raise SassError("this is not one kernel with its functions inlined: take `inline='never'` and recursion out")
    instructions, jumps, labels, pending_labels = [], [], {}, []
    line, block, starts_block = None, 0, True
    for row in text.splitlines():
        if found := re.match(r"\s*//## File .*, line (\d+)", row):
            line = int(found[1])
        elif found := re.match(r"(\.L_x_\d+):", row):
            pending_labels.append(found[1])
            starts_block = True
        elif found := re.match(r"\s*/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*);", row):
            address, name, rest = int(found[1], 16), found[2], found[3]
            block = address if starts_block else block
            starts_block = name.partition(".")[0] in ("BRA", "EXIT", "RET", "BRX", "JMP")
            labels |= dict.fromkeys(pending_labels, address)
            pending_labels = []
            if name == "NOP":
                continue
            instructions.append(Instruction(address, name, line, block))
            if target := re.search(r"\((\.L_x_\d+)\)", rest) if name.startswith("BRA") else None:
                jumps.append((target[1], address))
    loops = [(labels[target], at) for target, at in jumps if target in labels and labels[target] < at]
    return Sass(tuple(instructions), tuple(loops), registers, spill_bytes)


def tool(name: str) -> str | None:
    """Return the path of a tool of the CUDA toolkit, on the PATH or in a wheel; None if it is missing."""
    wheels = find_spec("nvidia")
    roots = wheels.submodule_search_locations or [] if wheels else []
    found = [path for root in roots for path in sorted(Path(root).glob(f"*/bin/{name}*"))]
    return shutil.which(name) or (str(found[0]) if found else None)


def _run_tool(name, *arguments):
    path = tool(name)
    if path is None:
        raise SassError(f"`{name}` of the CUDA toolkit is not here: `pip install {PIP_PACKAGES[name]}` brings it")
    process = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True)
    if process.returncode:
        raise SassError(f"{name} refused the code: {process.stderr.strip()}")
    return process


def _executions(trace):
    """Return the number of executions by warps of each line that accesses memory."""
    times = defaultdict(int)
    for site in trace.sites:
        times[site.site.line] = max(times[site.site.line], site.requests)
    return times


def _operations(trace, line):
    """Return the floating-point additions, subtractions and multiplications of a line; 0 if they are not certain."""
    count, is_unsure = 0, False
    nodes = [ast.parse(trace.source)]
    while nodes:
        node = nodes.pop()
        here = getattr(node, "lineno", 0) + trace.first_line - 1 == line
        if here and isinstance(node, ast.BinOp | ast.AugAssign):
            count += isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
            is_unsure |= not isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
        is_unsure |= here and isinstance(node, ast.Call)
        index = node.slice if isinstance(node, ast.Subscript) else None  # its arithmetic is on integers
        nodes += [child for child in ast.iter_child_nodes(node) if child is not index]
    return 0 if is_unsure else count


def _distribute(copies, times, loop_of):
    """Yield the passes of each basic block that has a line, the block with the most copies first."""
    for block, count in sorted(copies.items(), key=lambda item: -item[1]):
        passes = times // count if count > 1 else times / count
        passes = passes if loop_of(block) else min(passes, 1)
        times -= passes * count
        yield block, passes
