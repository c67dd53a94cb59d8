"""A change of a function, and how code is quoted in its sentence."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

HINTED, LIKELY, POSSIBLE, UNLIKELY, LAST, CHANCE = range(-1, 5)  # ranks; hinted at by what other lines do
BARRIER, FENCE = "cuda.syncthreads()", "cuda.threadfence()"
MOST_CHARACTERS = 70  # of code that is quoted
SIMPLE = ast.Assign | ast.AugAssign | ast.Expr


@dataclass(frozen=True)
class Change:
    """A change of a function: its line, the sentence on what is wrong there, and the text with the change made.

    `rank` is lower for likelier changes. `constants` are new values of names that the text's cell defines. `helper`
    names the function of the cell that is changed, if it is not the one that is judged.
    """

    rank: int
    line: int
    said: str
    text: str
    constants: dict[str, int] = field(default_factory=dict)
    helper: str = ""


def quote(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]
    return f"`{text}`" if len(text) <= MOST_CHARACTERS else f"`{text[:MOST_CHARACTERS]}...`"


def exchanges(indices: Sequence[ast.expr]) -> Iterator[list[ast.expr]]:
    for i in range(len(indices)):
        for j in range(i):
            if ast.unparse(indices[i]) != ast.unparse(indices[j]):
                other = list(indices)
                other[i], other[j] = other[j], other[i]
                yield other


def parse_expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def text_of(function):
    return ast.unparse(ast.fix_missing_locations(function))
