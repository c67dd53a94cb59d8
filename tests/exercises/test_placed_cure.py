"""Cures that name their line, where the code of an answer shows it for sure."""

import ast

import pytest

from labkit.checking.placed_cure import (
    calls_of,
    find_swap,
    first_store_of,
    number_lines,
    operations,
    products_with,
    quotients_by,
    ranges_to,
    truth_of,
)

KERNEL = """def kernel(A, C, width):
    {grid} = cuda.grid(2)
    M, N = C.shape
    if {guard}:
        C[row, col] = A[row, col]
"""
BOUND = "`row` goes with `{0}.shape[0]`, and `col` with `{0}.shape[1]`: does the guard have them so?"
SWAPS = [  # the names of the grid, the guard, the line, and the beginning of what is said
    ("row, col", "row < M and col < N", 2, "x comes first"),
    ("col, row", "row < A.shape[1] and col < A.shape[0]", 4, BOUND.format("A")),
    ("col, row", "N > row and col < M", 4, BOUND.format("C")),
    ("col, row", "row < M and col < N", None, ""),
    ("col, row", "row < width", None, ""),
    ("both", "row < N", None, ""),
]


@pytest.mark.parametrize(("grid", "guard", "line", "said"), SWAPS)
def test_rows_and_columns_are_told_where_the_code_exchanges_them(grid, guard, line, said):
    place = find_swap(ast.parse(KERNEL.format(grid=grid, guard=guard)).body[0])
    assert place.line == line and place.said.startswith(said) and bool(place.said) == bool(said)


PLACES = [  # what is looked for, a line of code, and whether the line is named
    (quotients_by("stride"), "p, q = a // stride, b // stride", True),
    (quotients_by("stride"), "p = a // pad", False),
    (products_with(2), "gain = 2 * rows * columns", True),
    (products_with(2), "gain = 16 * rows", False),
    (truth_of("limit"), "x = limit and a > limit", True),
    (truth_of("limit"), "x = not limit or a", True),
    (truth_of("limit"), "x = limit is not None and a", False),
    (operations(ast.Div), "x = int(y / 2)", True),
    (operations(ast.Div), "x = y // 2", False),
    (calls_of("sqrt", "rsqrt"), "x = math.sqrt(y)", True),
    (calls_of("sqrt", "rsqrt"), "x = y ** 0.5", False),
    (ranges_to("A.shape[1]"), "x = range(0, A.shape[1], 8)", True),
    (ranges_to("A.shape[1]"), "x = range(A.shape[1])", False),
    (first_store_of("rate", stores=1), "x[0] = rate * y", True),
    (first_store_of("rate", stores=1), "x[0] = y", False),
]


@pytest.mark.parametrize(("find", "code", "is_found"), PLACES)
def test_a_line_is_named_if_it_is_the_only_one(find, code, is_found):
    once, twice = (ast.parse("def f():\n" + f"    {code}\n" * times).body[0] for times in (1, 2))
    assert find(once).line == (2 if is_found else None)
    assert find(twice).line is None


def test_a_name_for_a_length_ends_a_range_as_well():
    function = ast.parse("def f(A):\n    K = A.shape[1]\n    for k in range(0, K, 8):\n        pass").body[0]
    assert ranges_to("A.shape[1]")(function).line == 3


def test_numbers_are_found_where_the_first_of_them_stands_if_all_are_there():
    function = ast.parse("def f(x):\n    x |= 3\n    x |= 5").body[0]
    assert number_lines(5, 3)(function).line == 2 and number_lines(3, 7)(function).line is None
