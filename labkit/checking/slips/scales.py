"""Changes of how far apart things begin: a name that needs a factor wherever it is used, or where it is set."""

import ast
from collections.abc import Iterable, Iterator

from labkit.checking.mutants import slots
from labkit.checking.slips.change import HINTED, POSSIBLE, Change, quote, text_of
from labkit.checking.slips.several import change, expression, names_of

MOST_PLACES = 8


def scale_names(function: ast.FunctionDef, sizes: Iterable[str]) -> Iterator[Change]:
    """Yield the changes of a function; `sizes` are the names of lengths and constants."""
    yield from _scale_as_elsewhere(function)
    yield from _scale_what_is_set(function, sizes)


def _factors(function):
    """Return the factors that a name has somewhere, by its name, with the line."""
    found: dict[str, dict[str, int]] = {}
    for node in ast.walk(function):
        match node:
            case ast.BinOp(ast.Constant(int()) | ast.Name() as factor, ast.Mult(), ast.Name(name)) | ast.BinOp(
                ast.Name(name), ast.Mult(), ast.Constant(int()) | ast.Name() as factor
            ):
                found.setdefault(name, {}).setdefault(text_of(factor), node.lineno)
    return found


def _scale_as_elsewhere(function):
    """Give a name the factor that it has in another line, in all sums and in those of one line."""
    for name, factors in _factors(function).items():
        sums = [slot for slot in slots(function) if _is_term(slot, name)]
        lines = sorted({slot[3].lineno for slot in sums})
        for factor, there in factors.items():
            for group in [sums, *([s for s in sums if s[3].lineno == line] for line in lines if len(lines) > 1)]:
                if not 0 < len(group) <= MOST_PLACES:
                    continue
                new = expression(f"{factor} * {name}")
                here = sorted({slot[3].lineno for slot in group})
                said = (
                    f"line {there} counts by `{text_of(new)}`, and here `{name}` has no factor: write `{text_of(new)}`"
                )
                said += f", in lines {' and '.join(map(str, here))}." if len(here) > 1 else "."
                yield change(function, HINTED, here[0], said, [(*slot, new) for slot in group])


def _is_term(slot, name):
    """Tell whether a slot holds a name as a term of a sum."""
    node, parent = slot[3], slot[0]
    is_read = isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    return is_read and isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add | ast.Sub)


def _scale_what_is_set(function, sizes):
    """Give all values that a line sets together a factor: tiles that begin further apart."""
    for node in ast.walk(function):
        match node:
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if all(isinstance(v, ast.Name) for v in values):
                names = " and ".join(quote(target) for target in targets)
            case _:
                continue
        used = names_of(ast.Tuple(values, ast.Load()))
        for factor in ("2", "4", *(size for size in sizes if size not in used)):
            new = [(node.value, "elts", i, v, expression(f"{factor} * {text_of(v)}")) for i, v in enumerate(values)]
            written = " and ".join(f"`{text_of(place[4])}`" for place in new)
            said = f"{names} begin `{factor}` apart, and here only 1: write {written}."
            yield change(function, POSSIBLE, node.lineno, said, new)
