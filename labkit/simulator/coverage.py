"""The parts of numba-cuda's kernel language that run in the simulator, and the refusal of all others.

The rows are read from the translator's tables.
"""

import ast
from dataclasses import dataclass

from labkit.simulator import language, random
from labkit.simulator.functions import refused as functions
from labkit.simulator.functions.reductions import REDUCTIONS
from labkit.simulator.translator import refused as code

# Each node of Python's grammar, as written.
STATEMENTS = {
    ast.Assign: "x = ...", ast.AugAssign: "x += ...", ast.AnnAssign: "x: int32 = ...",
    ast.Expr: "a call on a line of its own", ast.If: "if", ast.For: "for", ast.While: "while", ast.Break: "break",
    ast.Continue: "continue", ast.Return: "return", ast.Pass: "pass", ast.FunctionDef: "def inside a kernel",
    ast.AsyncFunctionDef: "async def", ast.ClassDef: "class", ast.With: "with", ast.Match: "match", ast.Raise: "raise",
    ast.Try: "try", ast.TryStar: "try with except*", ast.Assert: "assert", ast.Import: "import",
    ast.ImportFrom: "from ... import", ast.Global: "global", ast.Nonlocal: "nonlocal", ast.Delete: "del",
}  # fmt: skip
EXPRESSIONS = {
    ast.Constant: "literal", ast.Name: "name", ast.Attribute: "a.b", ast.Subscript: "a[i]", ast.Slice: "a[i:j:k]",
    ast.Call: "f(x)", ast.Tuple: "(a, b)", ast.BinOp: "a + b", ast.UnaryOp: "-a", ast.BoolOp: "a and b",
    ast.Compare: "a < b", ast.IfExp: "a if c else b", ast.NamedExpr: "(a := b)", ast.Lambda: "lambda",
    ast.List: "[a, b]", ast.Dict: "{a: b}", ast.Set: "{a, b}", ast.ListComp: "[... for ...]",
    ast.SetComp: "{... for ...}", ast.DictComp: "{...: ... for ...}", ast.GeneratorExp: "(... for ...)",
    ast.JoinedStr: 'f"..."', ast.Starred: "*a", ast.Yield: "yield", ast.YieldFrom: "yield from",
}  # fmt: skip
OPERATORS = {
    node: f"{sign}a" if node in (ast.Invert, ast.UAdd, ast.USub) else sign for node, sign in language.SIGNS.items()
}
ARRAY_ATTRIBUTES = "shape strides size ndim itemsize nbytes flat T reshape".split()
# Families of names by prefix; the first match counts.
FAMILIES = {
    "cuda.libdevice.": "cuda.libdevice",
    "cuda.fp16.": "cuda.fp16",
    "cuda.bf16.": "cuda.bf16",
    "cuda.atomic.": "atomics",
    "xoroshiro128p_": "cuda.random",
    "cuda.": "cuda",
    "math.": "math",
    "cmath.": "cmath",
    "operator.": "operator",
    "np.": "NumPy's functions",
    "": "Python's functions",
}
ORDER = ["types", "vector types", *reversed(FAMILIES.values())]


@dataclass(frozen=True)
class Entry:
    """One piece of the language; `refusal` is the simulator's message, empty where it runs."""

    family: str
    name: str
    refusal: str = ""

    @property
    def runs(self) -> bool:
        return not self.refusal


def entries() -> list[Entry]:
    """Return the kernel language: its syntax, then its names by family."""
    syntax_tables = {"statements": STATEMENTS, "expressions": EXPRESSIONS, "operators": OPERATORS}
    syntax = [
        Entry(family, text, code.REFUSED.get(node, ""))
        for family, nodes in syntax_tables.items()
        for node, text in nodes.items()
    ]
    arrays = [Entry("arrays", f"a.{name}") for name in ARRAY_ATTRIBUTES]
    arrays += [Entry("arrays", f"a.{name}", text.format(name="a")) for name, text in code.ARRAY_METHODS.items()]
    return [*syntax, *arrays, *sorted(_names(), key=lambda e: (ORDER.index(e.family), not e.runs, e.name))]


def _names():
    yield from (Entry("types", name) for name in language.CASTS if name not in language.BUILTINS)
    yield from (Entry("vector types", name) for name in language.VECTORS)
    in_kernels = (n for n in random.__all__ if n.startswith("xoroshiro128p_") and n != "xoroshiro128p_dtype")
    yield from (Entry(_family(name), name) for name in in_kernels)
    plain = {*language.POSITIONS, *language.CONSTANTS, *language.CALLS, *language.FUNCTIONS, *REDUCTIONS}
    yield from (Entry(_family(name), name) for name in plain | language.BUILTINS)
    for name in {*functions.REFUSED, *functions.ABSENT, *language.HOST, *language.MAKE_ARRAYS}:
        yield Entry(_family(name), name, language.explain_unknown(name, name))
    for name in code.PYTHON_FUNCTIONS:
        yield Entry(_family(name), name, code.NO_PYTHON_FUNCTION.format(name=name))


def _family(name):
    return next(family for prefix, family in FAMILIES.items() if name.startswith(prefix))
