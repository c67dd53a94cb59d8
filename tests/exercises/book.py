"""All kernels and loops of the book: the steps of the ladders, and the functions in the chapters' cells."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from exercise_cells import cells_of

from labkit import places
from labkit.checking.definitions import read_definitions

ROOMS = (
    "loops",
    "blas",
    "gemm/fp32",
    "gemm/tensor",
    "gemm/interface",
    "conv/direct",
    "conv/im2col",
    "conv/implicit_gemm",
    "conv/winograd",
    "conv/fft",
    "norm/batch",
    "softmax",
    "softmax/forward",
    "softmax/backward",
    "attention",
    "attention/forward",
    "attention/backward",
    "attention/decode",
)


@dataclass(frozen=True)
class BookKernel:
    """A function of the book: its file, its name, and the text that defines it and all that it needs."""

    origin: str
    name: str
    machine: str
    parameters: int
    text: str

    def named(self, name: str) -> dict:
        """Return what the text defines, with the function under another name."""
        text = re.sub(rf"\b{self.name}\b", name, self.text)
        return read_definitions(text, f"<{self.origin} {self.name} as {name}>", {})


def kernels() -> Iterator[BookKernel]:
    """Yield all kernels and loops."""
    for room in ROOMS:
        for path in sorted((places.PACKAGE / room).glob("*.py")):
            text = path.read_text(encoding="utf-8")
            whole = "\n".join([*_imported(text), text])
            yield from (BookKernel(f"{room}/{path.name}", *found, whole) for found in _functions(text))
    for path in sorted((places.folder("notebooks") / "source").glob("*.md")):
        whole = ""
        for text in cells_of(path):
            whole += f"{text}\n"
            yield from (BookKernel(path.stem, *found, whole) for found in _functions(text))


def _imported(text: str) -> Iterator[str]:
    """Yield the texts of the modules of operations that a module imports from."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith(
            ("labkit.blas", "labkit.gemm", "labkit.conv", "labkit.norm", "labkit.softmax", "labkit.attention")
        ):
            path = places.PACKAGE.parent / f"{node.module.replace('.', '/')}.py"
            if path.is_file():
                found = path.read_text(encoding="utf-8")
                yield from _imported(found)
                yield found


def _functions(text: str) -> list[tuple[str, str, int]]:
    """Return name, machine and number of parameters of all functions that a learner could hand in."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a magic command, or a bug that is shown
        return []
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    machines = [(f, {_machine(decorator) for decorator in f.decorator_list} & {"cpu", "gpu"}) for f in functions]
    return [(f.name, machine, len(f.args.args)) for f, found in machines for machine in found]


def _machine(decorator) -> str:
    written = ast.unparse(decorator)
    return {"cuda.jit": "gpu", "njit": "cpu"}.get(written.split("(")[0], "") if "device=True" not in written else ""
