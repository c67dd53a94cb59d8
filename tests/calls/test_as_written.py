"""Calls of operations fit their signatures wherever they are written: README, chapters, docstrings and our own code."""

import ast
import re
from contextlib import suppress
from inspect import signature

import pytest

import labkit
from labkit import attention, conv, gemm, layouts, norm, places, softmax

ROOT = places.PACKAGE.parent
MODULES = {
    each.__name__.removeprefix("labkit."): each for each in (labkit, attention, conv, gemm, layouts, norm, softmax)
}
CELLS = re.compile(r"^```(?:\{code-cell\} ipython3|python)\n(?::[^\n]*\n|\n)*(.*?)^```", re.M | re.S)
EXAMPLES = re.compile(r"^ *>>> (.*)", re.M)


def named(node):
    """The call of an operation, or what plans calls, that an expression names; None if there is none."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in MODULES:
            found = getattr(MODULES[name], attribute, None)
            return found if hasattr(found, "operation") or attribute.startswith("plan") else None


def written(code):
    """What is called, and the call, of those in a piece of code."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and (found := named(node.func)) is not None:
            if found is labkit.plan:
                found, node.args = named(node.args[0]), node.args[1:]
            if found is not None:
                yield found, node


def pieces():
    """Pieces of code by where they are."""
    for path in [ROOT / "README.md", *places.folder("notebooks").glob("source/*.md")]:
        for cell in CELLS.findall(path.read_text(encoding="utf-8")):
            yield path.name, re.sub(r"^(\s*)[%!].*", r"\1pass", cell, flags=re.M)
    for path in sorted(places.PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield path.relative_to(ROOT).as_posix(), text
        for example in EXAMPLES.findall(text):
            with suppress(SyntaxError):  # the first of several lines
                ast.parse(example)
                yield path.relative_to(ROOT).as_posix(), example


def misfit(function, node):
    """Why a call does not fit its function; "" where it does, as far as one can tell where something is spread."""
    arrays = [X for X in node.args if not isinstance(X, ast.Starred)]
    options = {X.arg: X for X in node.keywords if X.arg is not None}
    is_whole = len(arrays) + len(options) == len(node.args) + len(node.keywords)
    try:
        (signature(function).bind if is_whole else signature(function).bind_partial)(*arrays, **options)
    except TypeError as error:
        return str(error)
    return ""


def test_calls_fit_their_signatures_wherever_they_are_written():
    seen, wrong = set(), []
    for where, code in pieces():
        for function, node in written(code):
            seen.add((where, function.__name__))
            if why := misfit(function, node):
                wrong.append(f"{where}: {ast.unparse(node)}: {why}")
    assert not wrong, "\n".join(wrong)
    assert {
        ("README.md", "multiply"),
        ("hopper-gemm.md", "multiply"),
        ("labkit/norm/folding.py", "batch_norm"),
    } <= seen


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("gemm.multiply(A, B, C)", "too many positional arguments"),
        ("gemm.multiply(A, B, C=C, beta=1)", ""),
        ("attention.plan(*arrays, O=O)", ""),
        ("attention.attend(*arrays, out=O)", "got an unexpected keyword argument 'out'"),
        ("norm.plan(norm.layer_norm, x, w, b, y)", "too many positional arguments"),
        ("labkit.plan(softmax.softmax, x, out=y)", ""),
        ("norm.layer_norm(y=y)", "missing a required argument: 'x'"),
    ],
)
def test_what_does_not_fit_is_found(code, why):
    ((function, node),) = written(code)
    assert misfit(function, node) == why
