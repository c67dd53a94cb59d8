import ast

import pytest

from labkit.checking.answers import Answer
from labkit.checking.mutants import mutations

SOURCE = """TILE = 4


@cuda.jit
def kernel(x, out):
    col, row = cuda.grid(2)
    if row < 3 and col < x.size:
        out[row, col] = x[col] + 1
    cuda.syncthreads()
"""


@pytest.fixture(scope="module")
def whats():
    return [mutation.what for mutation in mutations(SOURCE)]


@pytest.mark.parametrize(
    "what",
    [
        "line 6: col, row = cuda.grid(2) -> row, col = cuda.grid(2)",
        "line 7: row < 3 -> row <= 3",
        "line 7: row < 3 and col < x.size -> row < 3 or col < x.size",
        "line 7: row < 3 and col < x.size -> row < 3",
        "line 7: 3 -> 2",
        "line 7: row -> col",
        "line 8: out[row, col] -> out[col, row]",
        "line 8: x[col] + 1 -> x[col] - 1",
        "line 9: cuda.syncthreads() -> pass",
    ],
)
def test_every_small_mistake_is_made(whats, what):
    assert what in whats


def test_each_mutation_is_one_change_of_the_same_text():
    texts = [mutation.source for mutation in mutations(SOURCE)]
    same = ast.unparse(ast.parse(SOURCE)).splitlines()
    for text in texts:
        ast.parse(text)
        changed = [pair for pair in zip(same, text.splitlines(), strict=True) if pair[0] != pair[1]]
        assert len(changed) == 1


def test_an_edit_that_fits_nowhere_or_twice_is_refused():
    for old in ("absent", "col"):
        with pytest.raises(ValueError, match="times in the solution"):
            Answer("an answer", "result", ((old, "x"),)).source(SOURCE)


def test_the_lengths_of_arrays_are_mixed_up():
    source = "def kernel(A, B):\n    M, K = A.shape\n    N = B.shape[1]\n    for k in range(0, K):\n        pass\n"
    whats = {mutation.what for mutation in mutations(source)}
    assert {"line 4: K -> N", "line 4: K -> M", "line 3: B.shape -> A.shape"} <= whats
