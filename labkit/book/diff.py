"""`diff(before, after)`: the changes from one step of a ladder to the next, in constants and kernel."""

import ast
import inspect
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from labkit.book.show import RULES, fold
from labkit.checking.source import python_function
from labkit.ladder import Step

CONTEXT = 2  # equal lines that are shown around a change
MARKS = {"-": ("labkit-gone", "taken out"), "+": ("labkit-new", "put in"), " ": ("", "")}
DIFF_RULES = [
    ".labkit-diff .labkit-gone { background: color-mix(in srgb, #D55E00 16%, transparent); }",
    ".labkit-diff .labkit-new { background: color-mix(in srgb, #009E73 20%, transparent); }",
    # a long line continues in the next, indented by four more characters
    ".labkit-diff pre > span { --in: calc(1.6em + (var(--labkit-indent) + 4) * 1ch); display: block; }",
    ".labkit-diff pre > span { padding-left: var(--in); text-indent: calc(-1 * var(--in)); }",
    ".labkit-diff .labkit-mark { display: inline-block; width: 1.6em; text-indent: 0; user-select: none; }",
    ".labkit-diff .labkit-skip { opacity: 0.6; }",
]


@dataclass(frozen=True)
class Diff:
    """Lines of two steps, marked "-" (only before), "+" (only after) or " "; None where equal lines are left out.

    `folded` is the line that a reader clicks to see them; empty if they are not folded.
    """

    before: str
    after: str
    lines: tuple[tuple[str, str] | None, ...]
    folded: str = ""

    def __repr__(self):
        shown = ["   ..." if line is None else f"{line[0]} {line[1]}" for line in self.lines]
        return "\n".join([f"{self.before} -> {self.after}", *(line.rstrip() for line in shown)])

    def _repr_html_(self):
        rows = "".join(map(_row, self.lines))
        title = f"<p><code>{escape(self.before)}</code> → <code>{escape(self.after)}</code></p>"
        style = f"<style>{' '.join(RULES + DIFF_RULES)}</style>"
        listing = (
            f'{title}<div class="labkit-listing labkit-diff">'
            f'<pre style="white-space: pre-wrap; word-break: normal">{rows}</pre></div>'
        )
        return style + (fold(self.folded, listing) if self.folded else listing)


def diff(before: Step, after: Step, folded: str = "") -> Diff:
    """Compare the constants and kernels of two steps of a ladder.

    Parameters
    ----------
    before, after
        Steps, such as `step("fp32", "tiled")`.
    folded
        For a long list of changes: the line that a reader clicks to see it.
    """
    old, new = _constants_and_kernel(before), _constants_and_kernel(after)
    lines: list[tuple[str, str] | None] = []
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for number, (kind, a, b, c, d) in enumerate(changes):
        if kind != "equal":
            lines += [("-", line) for line in old[a:b]] + [("+", line) for line in new[c:d]]
            continue
        head = CONTEXT if number else 0
        tail = CONTEXT if number < len(changes) - 1 else 0
        equal = [(" ", line) for line in old[a:b]]
        if len(equal) <= head + tail + 1:  # a mark instead of one line would save nothing
            lines += equal
        else:
            lines += [*equal[:head], None, *equal[len(equal) - tail :]]
    return Diff(before.name, after.name, tuple(lines), folded)


def _constants_and_kernel(step) -> list[str]:
    """Return a step's lines from the first after its imports to the end of its kernel."""
    text = inspect.getsource(step.module)
    body = ast.parse(text).body
    name = python_function(step.kernel).__name__
    kernel = next(node for node in body if isinstance(node, ast.FunctionDef) and node.name == name)
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = text.splitlines()[imports[-1].end_lineno : kernel.end_lineno]
    return [line for i, line in enumerate(lines) if line.strip() or (i and lines[i - 1].strip())]


def _row(line):
    if line is None:
        return '<span class="labkit-skip" style="--labkit-indent: 0">   ⋮\n</span>'
    mark, text = line
    kind, spoken = MARKS[mark]
    code = highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).rstrip("\n")
    aloud = f' aria-label="{spoken}"' if spoken else ""
    indent = f"--labkit-indent: {len(text) - len(text.lstrip())}"
    return f'<span class="{kind}" style="{indent}"><span class="labkit-mark"{aloud}>{mark}</span>{code}\n</span>'
