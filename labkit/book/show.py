"""`show(step)`: a kernel's source in the package, with its constants and, folded, the functions that it calls."""

import inspect
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer, PythonLexer

from labkit import places
from labkit.book import surroundings
from labkit.checking.source import python_function

# JupyterLab's colours of code, by pygments' names: a listing looks like a cell, in a light theme and in a dark one.
COLOURS = {
    "keyword": "k kc kd kn kr kt ow",
    "comment": "c c1 ch cm cp cpf",
    "number": "mb mf mh mi",
    "string": "s s1 s2 sd",
    "builtin": "nb",
    "def": "nf",
    "meta": "nd",
    "operator": "o",
}
RULES = [
    "div.labkit-listing :is(pre, pre *) { font-family: var(--jp-code-font-family, monospace); }",
    "div.labkit-listing .linenos { opacity: 0.7; margin-right: 1.5em; user-select: none; }",
    *(
        f"div.labkit-listing :is(.{', .'.join(names.split())}) {{ color: var(--jp-mirror-editor-{kind}-color); }}"
        for kind, names in COLOURS.items()
    ),
]


@dataclass(frozen=True)
class Listing:
    """A kernel's source, its first line number, its constants and helpers.

    Attributes
    ----------
    constants
        The lines of its file that give it its constants, each with its number; those of other files without.
    helpers
        The functions of the package that it calls.
    cuda_cpp
        The text of its CUDA C++ version, if there is one.
    folded
        The line that a reader clicks to see the listing; empty if it is not folded.
    """

    title: str
    python: str
    first_line: int
    constants: tuple[tuple[int | None, str], ...] = ()
    helpers: tuple["Listing", ...] = ()
    cuda_cpp: str = ""
    folded: str = ""

    @property
    def lines(self) -> list[tuple[int | None, str]]:
        """Constants and kernel, each line with its number in the file; an empty line without number separates them."""
        above = [*self.constants, (None, "")] if self.constants else []
        return above + list(enumerate(self.python.splitlines(), self.first_line))

    def __repr__(self):
        return "\n".join(f"{number}  {line}".rstrip() for number, line in _aligned(self.lines))

    def _repr_html_(self):
        text = _highlighted_html(self.lines, PythonLexer)
        for helper in self.helpers:
            text += fold(f"{helper.title}, which it uses", _highlighted_html(helper.lines, PythonLexer))
        if self.cuda_cpp:
            twin = _highlighted_html(enumerate(self.cuda_cpp.splitlines(), 1), CudaLexer)
            text += fold(f"{self.title} in CUDA C++", twin)
        return f"<style>{' '.join(RULES)}</style>" + (fold(self.folded, text) if self.folded else text)


def show(step: Any, folded: str = "") -> Listing:
    """Show the source of a step's kernel, or of any kernel or function, with its line numbers.

    Its constants are shown above it. The functions of the package that it calls and its CUDA C++ version are folded
    below it.

    Parameters
    ----------
    step
        A step of a ladder, such as `ladder("fp32")[0]`, or a kernel.
    folded
        For a long listing: the line that a reader clicks to see it.
    """
    function = python_function(getattr(step, "kernel", step))
    helpers = tuple(_listing(helper) for helper in surroundings.helpers(function))
    twin = _cuda_cpp_path(function)
    cuda_cpp = twin.read_text(encoding="utf-8") if twin else ""
    return replace(_listing(function), helpers=helpers, cuda_cpp=cuda_cpp, folded=folded)


def _listing(function):
    lines, first_line = inspect.getsourcelines(function)
    return Listing(function.__name__, "".join(lines).rstrip(), first_line, tuple(surroundings.constants(function)))


def _aligned(lines):
    """Return numbers as text of one width."""
    lines = list(lines)
    width = max(len(str(number)) for number, _ in lines if number)
    return [(str(number or "").rjust(width), line) for number, line in lines]


def _highlighted_html(lines, lexer):
    numbers, code = zip(*_aligned(lines))
    coloured = highlight("\n".join(code), lexer(stripnl=False), HtmlFormatter(nowrap=True)).splitlines()
    rows = (f'<span class="linenos">{number}</span>{line}\n' for number, line in zip(numbers, coloured, strict=True))
    # The style is stronger than JupyterLab's, which breaks long lines anywhere. Lines of 110 letters fit into 848 px.
    style = "white-space: pre; overflow-x: auto; font-size: 12px"
    return f'<div class="labkit-listing"><pre style="{style}">{"".join(rows)}</pre></div>'


def fold(title: str, content: str) -> str:
    """Return HTML that shows its title, and the content where a reader clicks it."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _cuda_cpp_path(function):
    """Return kernels/gemm/fp32/s03_tiled.cu for labkit.gemm.fp32.s03_tiled, if it exists."""
    package, *path = function.__module__.split(".")
    twin = places.folder("kernels").joinpath(*path).with_suffix(".cu")
    return twin if package == "labkit" and twin.is_file() else None
