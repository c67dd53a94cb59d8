"""Chapters import from labkit, its views, the book and operations alone: what moves breaks no learner's copy."""

import ast
import re
from pkgutil import resolve_name
from types import ModuleType

import jupytext
import pytest

from labkit import places

SOURCES = sorted(places.folder("notebooks").glob("source/*.md"))
ROOMS = ["labkit", "labkit.book", "labkit.views", *(f"labkit.{name}" for name in places.operations())]
IMPORT = re.compile(r"\b(?:from (labkit[\w.]*) import|import (labkit[\w.]*))")


def code(path):
    """The cells of a chapter with code, hidden ones and exercises too."""
    cells = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst").cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def too_deep(code):
    """The names of labkit that code takes from where they are not offered."""
    tree = ast.parse(code)
    names = {"labkit": resolve_name("labkit")}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "labkit":
            for alias in node.names:
                if node.module in ROOMS and _offers(resolve_name(node.module), alias.name):
                    names[alias.asname or alias.name] = resolve_name(f"{node.module}.{alias.name}")
                else:
                    yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("labkit."))
    for node in ast.walk(tree):
        first, *rest = _dotted(node) or [None]
        found = names.get(first)
        while rest and isinstance(found, ModuleType):
            if not _offers(found, rest[0]):
                yield f"{found.__name__}.{rest[0]}"
                break
            found = getattr(found, rest.pop(0))


def _offers(module, name):
    """Whether a module lists a name, or, where it lists none, has it for itself: no module that it imports."""
    if hasattr(module, "__all__"):
        return name in module.__all__
    return not isinstance(getattr(module, name), ModuleType)


def _dotted(node):
    """The parts of `a.b.c`, where a node is that."""
    if isinstance(node, ast.Name):
        return [node.id]
    above = _dotted(node.value) if isinstance(node, ast.Attribute) else []
    return [*above, node.attr] if above else []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_chapter_imports_what_is_offered_and_nothing_deeper(path):
    told = {name for names in IMPORT.findall(path.read_text(encoding="utf-8")) for name in names if name}
    assert told <= {*ROOMS}, "import it from labkit, and list it in labkit/__init__.py"
    assert not {*too_deep(code(path))}, "list it in the `__all__` of what it is imported from"


@pytest.mark.parametrize(
    "code, name",
    [
        ("from labkit.machine.gpus import gpu", "labkit.machine.gpus.gpu"),
        ("from labkit import places", "labkit.places"),
        ("import labkit.calls.timing", "labkit.calls.timing"),
        ("import labkit\nlabkit.simulator.run", "labkit.simulator"),
        ("def late():\n    from labkit import gemm\n    gemm.tensor.operands.specialise_format", "labkit.gemm.tensor"),
        ("from labkit import sass\nsass.subprocess.run", "labkit.forecast.sass.subprocess"),
    ],
)
def test_deep_names_are_found(code, name):
    assert {*too_deep(code)} == {name}


def test_short_names_are_none():
    assert not [
        *too_deep("import labkit\nfrom labkit.blas import gemv as g\ng.gemv, labkit.gpu, labkit.gemm.tilings.Work")
    ]
