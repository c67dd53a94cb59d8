"""Reads that are only guesses, which a compare-and-swap then checks."""

import ast
from textwrap import dedent, indent

import pytest

from labkit.simulator.translator.guesses import find_guesses


def lines(text):
    """The lines of the body whose subscripts count as guesses."""
    [function] = ast.parse("def f():\n" + indent(dedent(text).strip(), "    ")).body
    return sorted(node.lineno - 1 for node in find_guesses(function))


SWAP = "cuda.atomic.cas(total, i, assumed, assumed + 1)"


@pytest.mark.parametrize(
    "text",
    [
        f"""
        assumed = total[i]
        {SWAP}""",
        """
        assumed = total[0]
        cuda.atomic.compare_and_swap(total, assumed, 1)""",
        f"""
        old = total[i]
        while True:
            assumed = old
            old = {SWAP}
            if old == assumed:
                break
        out[i] = old
        return old""",
        """
        assumed = total[i]
        while cuda.atomic.cas(total, i, assumed, assumed + 1) != assumed:
            out[i] += 1
            assumed = total[i]""",
        """
        old = bits[i, j]
        while old > 3:
            wanted = int32(math.sqrt(float32(old)))
            wanted += y[old]
            old = cuda.atomic.cas(bits, (i, j), old, wanted)""",
    ],
)
def test_a_guess_goes_only_into_the_swap(text):
    assert 1 in lines(text)


@pytest.mark.parametrize(
    "text",
    [
        "assumed = total[i]",
        f"assumed = total[j]\n{SWAP}",
        f"assumed = other[i]\n{SWAP}",
        f"old = total[i]\nassumed = old + 1\n{SWAP}",
        f"{SWAP}\nassumed = total[i]\nout[i] = assumed",
        f"assumed = total[i]\nout[i] = assumed\n{SWAP}",
        f"assumed = total[i]\nout[assumed] = 1\n{SWAP}",
        f"assumed = total[i]\nnext = assumed + 1\ncuda.atomic.add(out, 0, next)\n{SWAP}",
        f"assumed = total[i]\nif i > 3:\n    return assumed\n{SWAP}",
        f"assumed = total[i]\ncuda.atomic.add(total, i, assumed)\n{SWAP}",
        f"a, assumed = total[i], total[i]\n{SWAP}",
    ],
)
def test_other_reads_are_none(text):
    assert lines(text) == []
