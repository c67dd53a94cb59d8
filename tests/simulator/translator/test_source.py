"""Reading of a function's source."""

import pytest
from cells import run_cell

from labkit.simulator.errors import KernelError
from labkit.simulator.reading.source import argument_names, captured_values, read_source


def test_lines_are_those_of_the_cell():
    function = run_cell("n = 3\n\n\ndef outer():\n    def kernel(x):\n        x[0] = n\n    return kernel")["outer"]()
    source = read_source(function)
    assert source.text == "def kernel(x):\n    x[0] = n\n"
    assert source.first_line == source.tree.lineno == 5
    assert source.tree.body[0].lineno == 6


def test_captured_prefers_closures_to_globals():
    function = run_cell("n = 3\nm = 4\ndef outer(n):\n    def kernel(x):\n        x[0] = n + m\n    return kernel")[
        "outer"
    ](7)
    assert captured_values(function)["n"] == 7
    assert captured_values(function)["m"] == 4


@pytest.mark.parametrize("arguments", ["*x", "x, *, n", "**x"])
def test_arguments_are_plain(arguments):
    function = run_cell(f"def kernel({arguments}):\n    pass")["kernel"]
    with pytest.raises(KernelError, match="plain positional"):
        argument_names(read_source(function))
