"""The tables that stand for numba's typing rules where it is not installed say what numba says."""

import itertools
import json
import operator

import numba_rules
import numpy as np
import pytest
from numba import types

from labkit.simulator import language, numba_types
from labkit.simulator.seam import by_numba, by_table, plain_types

FILE = json.loads(numba_rules.FILE.read_text(encoding="utf-8"))
FUNCTIONS = dict(sorted(numba_rules.functions().items()))
KINDS = [*numba_rules.KINDS.values()]


def plain(found):
    """The same with types of `plain_types`, for all that numba's rules return."""
    if isinstance(found, tuple):
        return tuple(map(plain, found))
    if isinstance(found, types.BaseTuple):
        return plain_types.Tuple(map(plain, found.types))
    if isinstance(found, types.RangeType):
        return plain(found.dtype)
    return None if found is None else plain_types.SCALARS.get(str(found), by_table.bfloat16)


def answer(found):
    """What a table returned; of a range, what it counts in."""
    return found and (getattr(found[0], "dtype", found[0]), found[1])


def test_the_tables_are_of_the_functions_that_the_simulator_asks_for():
    assert {name for each in FILE["functions"] for name in each["names"]} <= FUNCTIONS.keys()
    assert {part: FILE[part] for part in FILE if part != "functions"} == numba_rules.scalar_rules()


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_table_is_as_numba_makes_it(name):
    for operands in (1, 2):
        held = [each["rows"] for each in FILE["functions"] if name in each["names"] and each["operands"] == operands]
        made = numba_rules.table(FUNCTIONS[name], operands)
        assert held == [made] * bool(made), "numba has changed: run `python tests/simulator/numba_rules.py`"


@pytest.mark.parametrize("name", ["builtins.divmod", "operator.add", "operator.neg", "math.isnan", "numpy.fmax"])
def test_a_table_answers_as_numba(name):
    function = FUNCTIONS[name]
    for operands in itertools.chain(*(itertools.product(KINDS, repeat=count) for count in (1, 2))):
        assert answer(by_table.resolve(function, plain(operands))) == plain(by_numba.resolve(function, operands))


def test_ranges_and_powers_are_typed_as_by_numba():
    kinds = [types.int8, types.int64, types.uint32, types.uint64, types.float32, types.complex64, types.boolean]
    for operands in itertools.chain(*(itertools.product(kinds, repeat=count) for count in (1, 2, 3))):
        assert answer(by_table.resolve(range, plain(operands))) == plain(by_numba.resolve(range, operands))
    for kind, exponent in itertools.product(KINDS, (-(2**63), -3, 0, 2, 70000, 2**62, 2**63)):
        operands = plain(kind), plain_types.literal(exponent)
        known = by_numba.resolve(operator.pow, (kind, types.literal(exponent)))
        assert by_table.resolve(operator.pow, operands) == plain(known)


def test_overloads_are_chosen_as_by_numba():
    lists = {function.cases for function in language.FUNCTIONS.values() if function.cases}
    for cases in lists:
        plain_cases = [by_table.signature(plain(case.return_type), *map(plain, case.args)) for case in cases]
        for count in {len(case.args) for case in cases}:
            for operands in itertools.product(KINDS[:: 1 if count < 3 else 5], repeat=count):
                found = by_table.resolve_overload(plain_cases, plain(operands))
                assert found == plain(by_numba.resolve_overload(cases, operands)), (cases, operands)


def test_variables_are_typed_as_by_numba():
    kinds = [kind for kind in KINDS if kind != numba_types.bfloat16]
    for several in itertools.chain(*(itertools.product(kinds[:: 2 * count - 3], repeat=count) for count in (2, 3))):
        assert by_table.unify(*plain(several)) == plain(by_numba.unify(*several)), several


@pytest.mark.parametrize("kind", ["int8", "uint64", "float16", "float64", "complex64", "bool"])
def test_types_and_dtypes_are_numbas(kind):
    dtype = np.dtype(kind)
    assert plain(by_numba.from_dtype(dtype)) == by_table.from_dtype(dtype)
    assert by_table.as_dtype(by_table.from_dtype(dtype)) == dtype
    ours, numbas = by_table.from_dtype(dtype), by_numba.from_dtype(dtype)
    for name in ("name", "bitwidth", "minval", "maxval", "signed"):
        assert getattr(ours, name, None) == getattr(numbas, name, None)


def test_records_have_numbas_fields():
    dtype = np.dtype([("a", np.int32), ("b", np.float32, (3, 2)), ("c", [("x", np.int8)])], align=True)
    ours, numbas = by_table.from_dtype(dtype), by_numba.from_dtype(dtype)
    fields = [{n: (str(f.type), f.offset) for n, f in kind.fields.items()} for kind in (ours, numbas)]
    assert str(ours) == str(numbas) and [*fields[0]] == [*fields[1]]
    assert {k: v for k, v in fields[0].items() if k != "c"} == {k: v for k, v in fields[1].items() if k != "c"}
    assert ours == by_table.from_dtype(dtype) != by_table.from_dtype(np.dtype([("a", np.int32)]))
    assert by_table.as_dtype(ours) == by_numba.as_dtype(numbas)


@pytest.mark.parametrize("dtype", ["M8[s]", "S4", "U3", "O", ">f4"])
def test_dtypes_that_no_kernel_takes_have_no_type(dtype):
    with pytest.raises(by_table.NumbaError):
        by_table.from_dtype(np.dtype(dtype))


@pytest.mark.parametrize(
    "declared", ["void(float32[:], int32)", "(float32[:,::1], uint8[::1])", "float64(bool_, complex64)"]
)
def test_signatures_are_read_as_by_numba(declared):
    ours, numbas = by_table.parse_signature(declared), by_numba.parse_signature(declared)
    assert [*map(str, ours)] == [*map(str, numbas)]
