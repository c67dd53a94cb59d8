"""Constant expressions are computed where Python's compiler computes them, and nowhere else."""

import ast
import dis
from collections import Counter
from random import Random

import pytest
from cells import run_cell

from labkit.simulator.reading.folding import as_written, fold_constants
from labkit.simulator.reading.source import read_source

# Instructions of Python 3.11 to 3.13: the operations that a function computes when it runs.
AT_RUN_TIME = {
    "BINARY_OP": "BinOp", "BINARY_SUBSCR": "Subscript", "UNARY_NEGATIVE": "UnaryOp", "UNARY_INVERT": "UnaryOp",
}  # fmt: skip


def folded(text):
    return fold_constants(ast.parse(text, mode="eval")).body


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10 ** -3", 0.001),
        ("2 ** 64 - 1", 2**64 - 1),
        ("1 << 63", 2**63),
        ("(-8) ** 0.5", (-8) ** 0.5),
        ("-7 // 2 + 7 % -3", -6),
        ("~0", -1),
        ("-True", -1),
        ("not 0", True),
        ("not ()", True),
        ("not 'text'", False),
        ("__debug__", __debug__),
        ("1 + 2j", 1 + 2j),
        ("1e308 * 10", float("inf")),
        ("(4, 8)[1]", 8),
        ("((4, 8) * 2 + (3,))[-1]", 3),
        ("'=' * 3 + '>'", "===>"),
        ("'text'[1]", "e"),
        ("b'text'[1]", ord("e")),
    ],
)
def test_a_constant_expression_is_its_value(text, value):
    node = folded(text)
    assert isinstance(node, ast.Constant) and (node.value, type(node.value)) == (value, type(value))
    assert (node.lineno, node.col_offset, node.end_col_offset) == (1, 0, len(text))
    assert ast.unparse(as_written(node)) == ast.unparse(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0", "1 % 0", "0 ** -1", "1 << -1", "10.0 ** 400", "2 ** 200", "1 << 200", "'a' * 5000", "(1,) * 300",
        "(1, 2)[2]", "'%d' % 3", "-'a'", "1 < 2", "n ** -1", "-n", "(4, n)[0]", "0 or 10", "f'a' + 'b'",
    ],
)  # fmt: skip
def test_what_fails_is_large_or_holds_a_name_is_computed_when_it_runs(text):
    assert type(folded(text)) is type(ast.parse(text, mode="eval").body)


def test_a_tuple_of_constants_stays_a_tuple():
    node = folded("(1, 2) * 2 + (3 * 4,)")
    assert isinstance(node, ast.Tuple) and ast.literal_eval(node) == (1, 2, 1, 2, 12)
    assert {(part.lineno, part.col_offset) for part in node.elts} == {(1, 0)}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("for v in [1, n, 2 * 3]:\n    pass", "for v in (1, n, 6):\n    pass"),
        ("n in [1, 2]", "n in (1, 2)"),
        ("n not in [n, 2]", "n not in (n, 2)"),
        ("n in [1] in [2]", "n in [1] in (2,)"),
        ("n == n in [1]", "n == n in (1,)"),
        ("n in n == [1]", "n in n == [1]"),
        ("n == [1]", "n == [1]"),
        ("n in {1, 2}", "n in {1, 2}"),
        ("for v in [*n, 1]:\n    pass", "for v in [*n, 1]:\n    pass"),
        ("v = [1, 2]", "v = [1, 2]"),
    ],
)
def test_a_list_that_nothing_can_change_is_a_tuple(text, seen):
    tree = fold_constants(ast.parse(text))
    assert ast.dump(tree) == ast.dump(ast.parse(seen))
    assert ast.unparse(as_written(tree)) == text


def random_expression(rng, depth):
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(["0", "1", "2", "-3", "7", "64", "100", "0.5", "True", "n", "(1, 2, 3)[n]", "(4, 8)[1]"])
    if rng.random() < 0.2:
        return f"{rng.choice('-~')}({random_expression(rng, depth - 1)})"
    sign = rng.choice(["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"])
    return f"({random_expression(rng, depth - 1)}) {sign} ({random_expression(rng, depth - 1)})"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # `~True`
@pytest.mark.parametrize("seed", range(20))
def test_the_operations_that_are_left_are_those_in_the_bytecode(seed):
    rng = Random(seed)
    for _ in range(50):
        text = random_expression(rng, 4)
        left = Counter(type(node).__name__ for node in ast.walk(folded(text)))
        code = compile(text, "<expression>", "eval")
        run = Counter(AT_RUN_TIME.get(step.opname) for step in dis.get_instructions(code))
        assert {kind: left[kind] for kind in AT_RUN_TIME.values()} == {
            kind: run[kind] for kind in AT_RUN_TIME.values()
        }, text
        assert repr(compile(ast.Expression(folded(text)), "", "eval").co_consts) == repr(code.co_consts), text


def test_no_warning_is_given_twice(recwarn):
    folded("~True + (1, 2)['a']")
    assert not recwarn.list


@pytest.mark.parametrize("text", ["(1, 2)[0] = 3", "del (1, 2)[0]"])
def test_what_is_written_to_is_no_constant(text):
    assert ast.dump(fold_constants(ast.parse(text))) == ast.dump(ast.parse(text))


def test_the_tree_of_a_function_is_folded():
    function = run_cell("def kernel(x):\n    x[2 * 3] = (\n        10 ** -3)\n")["kernel"]
    (statement,) = read_source(function).tree.body
    assert (statement.targets[0].slice.value, statement.value.value) == (6, 0.001)
    assert (statement.value.lineno, statement.value.col_offset) == (3, 8)
