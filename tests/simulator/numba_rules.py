"""What numba answers to the simulator's questions about types, as `labkit/simulator/seam/rules.json` holds it.

`python tests/simulator/numba_rules.py` writes that file, which the simulator reads where numba is not installed.
"""

import json
from pathlib import Path
from pkgutil import resolve_name

from numba.core import types

from labkit.simulator import seam
from labkit.simulator.language import FUNCTIONS, SCALARS
from labkit.simulator.seam import by_numba
from labkit.simulator.translator.operators import BINARY, COMPARE, UNARY

FILE = Path(seam.__file__).with_name("rules.json")
# A letter for each type: NumPy's, and v for bfloat16.
LETTERS = {
    "b": "int8", "h": "int16", "i": "int32", "q": "int64", "B": "uint8", "H": "uint16", "I": "uint32", "Q": "uint64",
    "e": "float16", "f": "float32", "d": "float64", "v": "bfloat16", "F": "complex64", "D": "complex128", "?": "bool",
}  # fmt: skip
KINDS = {letter: SCALARS.get(name, types.boolean) for letter, name in LETTERS.items()}
LETTER_OF = {kind: letter for letter, kind in KINDS.items()}


def rules() -> dict:
    """Return the whole file."""
    return {**scalar_rules(), "functions": tables()}


def scalar_rules() -> dict:
    """Return the part of the file that is of no function."""
    return {
        "letters": LETTERS,
        "names": {name: str(kind) for name, kind in sorted(vars(types).items()) if is_scalar(name, kind)},
        "conversions": {a: "".join(conversion(KINDS[a], KINDS[b]) for b in KINDS) for a in KINDS},
        "unified": {a: "".join(unified(KINDS[a], KINDS[b]) for b in KINDS) for a in KINDS},
    }


def tables() -> list[dict]:
    """Return the tables of answers, each with the functions that share it."""
    names: dict = {}
    for name, function in sorted(functions().items()):
        for operands in (1, 2):
            if rows := table(function, operands):
                names.setdefault((operands, tuple(rows.items())), []).append(name)
    return [{"names": shared, "operands": n, "rows": dict(rows)} for (n, rows), shared in names.items()]


def table(function, operands: int) -> dict[str, str]:
    """Return the answers for a number of operands, a row for each type of the first of two; none if it takes no such.

    A function that takes two takes two of some one type.
    """
    if not any(by_numba.resolve(function, (kind,) * operands) for kind in KINDS.values()):
        return {}
    return {a: row(function, (KINDS[a],)) for a in KINDS} if operands == 2 else {"": row(function, ())}


def row(function, first) -> str:
    return " ".join(answer(by_numba.resolve(function, (*first, kind))) for kind in KINDS.values())


def answer(found) -> str:
    """Return the letters of a call's operands and of its result."""
    if found is None:
        return "-"
    result, operands = found
    results = result.types if isinstance(result, types.BaseTuple) else [result]
    return "".join(LETTER_OF[kind] for kind in (*operands, *results))


def functions() -> dict:
    """Return the functions that numba types by its own rules, by the names under which Python finds them."""
    found = {function for table in (UNARY, BINARY, COMPARE) for function, _ in table.values()}
    found |= {function.typed_as for function in FUNCTIONS.values() if not function.cases}
    return {full_name(function): function for function in found}


def full_name(function) -> str:
    module = type(function).__module__ if type(function).__name__ == "ufunc" else function.__module__
    name = f"{module.removeprefix('_')}.{function.__name__}"
    assert resolve_name(name) is function
    return name


def is_scalar(name, value) -> bool:
    """Whether a name of numba's types is that of a scalar, on every machine."""
    return isinstance(value, types.Type) and value in LETTER_OF and "long" not in name and name[:2] not in ("c_", "np")


def conversion(given, wanted) -> str:
    found = by_numba.typing_context().can_convert(given, wanted)
    return "-" if found is None else {"exact": "="}.get(found.name, found.name[0])


def unified(first, second) -> str:
    if by_numba.bfloat16 in (first, second):  # which the simulator knows by itself
        return "-"
    found = by_numba.unify(first, second)
    return "-" if found is None else LETTER_OF[found]


def text() -> str:
    return json.dumps(rules(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
