"""A stranger's cell: its functions by their own text, its constants where they are quickly computed."""

import inspect
import math

import numpy as np
import pytest

from labkit import ptx
from labkit.checking.definitions import read_definitions


def constants(text):
    return read_definitions(text, "<cell>", {})


def test_constants_are_computed_from_numbers():
    found = constants("TILE = 2**4\nSIZE = (TILE, TILE + 1)\nMASK = (1 << 32) - 1\nHALF = TILE**-1")
    assert (found["TILE"], found["SIZE"], found["MASK"], found["HALF"]) == (16, (16, 17), 0xFFFFFFFF, 1 / 16)


def test_constants_are_computed_from_bits():
    found = constants("TILE = 32\nODD = TILE | 1\nOTHER = TILE ^ 33\nLOW = 0xFF & 15")
    assert (found["ODD"], found["OTHER"], found["LOW"]) == (33, 1, 15)


@pytest.mark.parametrize(
    "value",
    [
        "10**10**8",
        "1 << 10**12",
        "3 ** 3 ** 3 ** 3",
        "2**64",
        "(2**63) * (2**63)",
        "1 - 2**64 * 2",
        " + ".join(["1"] * 1500),
        "-" * 1500 + "1",
    ],
)
def test_a_constant_that_takes_too_long_is_none(value):
    assert constants(f"N = {value}")["N"] is None


def test_a_tuple_that_doubles_is_none_when_it_is_too_long():
    found = constants("T = (1, 2)\n" + "T = (T, T)\n" * 8 + "U = (T, T)\nV = (U, U)")
    assert len(found["T"]) == 2
    assert (found["U"], found["V"]) == (None, (None, None))


def test_formats_of_the_tensor_cores_are_constants_and_nothing_else_of_the_module_is():
    found = constants("from labkit import ptx\nFORMAT = ptx.TF32\nBOX = ptx.TensorMap\nROW = ptx.nothing")
    assert (found["FORMAT"], found["BOX"], found["ROW"]) == (ptx.TF32, None, None)


@pytest.mark.parametrize(
    "text",
    [
        "P = N = 4",
        "N = 3\nN += 1",
        "N = 2\nN *= 2",
        "N = len((1, 2, 3, 4))",
        "import math\nN = math.ceil(3.2)",
        "from math import ceil as up\nN = up(3.2)",
        "SHAPE = (2, 4)\nN = SHAPE[1]",
        "(M, N), K = (2, 4), 8",
        "[M, N] = 2, 4",
        "%%capture out\nN = 4",
        "\n%%time\nN = 4",
        "%matplotlib inline\nN = 4",
    ],
)
def test_constants_are_read_however_they_are_written(text):
    assert constants(text)["N"] == 4


@pytest.mark.parametrize("later", ["for N in range(8):\n    pass", "if True:\n    N = 8", "with a as N:\n    pass"])
def test_a_name_that_something_else_sets_is_no_constant_any_more(later):
    assert constants(f"N = 4\n{later}")["N"] is None


def test_a_function_may_be_decorated_afterwards():
    found = constants(
        "from labkit import cuda\ndef kernel(x):\n    x[0] = 1\nkernel = cuda.jit(kernel)\nother = cuda.jit(print)"
    )
    assert found["kernel"].py_func.__name__ == "kernel"
    assert found["other"] is None


@pytest.mark.parametrize("before", ["", "\n", "\n\n\n", "  \n\n"])
def test_a_function_s_text_is_its_own_wherever_the_cell_begins(before):
    found = read_definitions(
        f"{before}MOST = 3\n\n\ndef f(x):\n    return x\n\n\ndef g(x):\n    return f(x)\n", "<cell>", {}
    )
    lines = before.count("\n")
    assert (found["f"].__code__.co_firstlineno, found["g"].__code__.co_firstlineno) == (lines + 4, lines + 8)
    assert inspect.getsource(found["f"].__code__) == "def f(x):\n    return x\n"
    assert inspect.getsource(found["g"].__code__) == "def g(x):\n    return f(x)\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("np.finfo(np.float32).min", np.finfo(np.float32).min),
        ("float(np.finfo(np.float32).max)", float(np.finfo(np.float32).max)),
        ("-np.finfo(np.float64).eps", -np.finfo(np.float64).eps),
        ("finfo(np.float16).tiny", np.finfo(np.float16).tiny),
        ("np.iinfo(np.int32).max", 2**31 - 1),
        ("-np.inf", -math.inf),
        ('float("-inf")', -math.inf),
        ("1 / math.log(2)", 1 / math.log(2)),
        ("math.log2(math.e)", math.log2(math.e)),
    ],
)
def test_limits_and_constants_of_mathematics_are_known_with_their_types(text, value):
    found = constants(f"import math\nimport numpy as np\nfrom numpy import finfo\nN = {text}")["N"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "np.finfo(np.float32).dtype",
        "np.finfo(np.float32).__class__",
        "np.finfo(np.float32)",
        "np.finfo(open).min",
        "np.finfo(dtype=np.float32).min",
        "np.finfo(np.int32).min",
        "np.iinfo(np.float32).max",
        "other.finfo(np.float32).min",
        'float("9" * 10**9)',
        "math.exp(10000)",
        "0x" + "f" * 1000,
    ],
)
def test_nothing_else_of_them_is(text):
    assert constants(f"import math\nimport numpy as np\nN = {text}")["N"] is None


@pytest.mark.parametrize("magic", ["%%writefile N.py", "%%timeit", "%%bash", "%%captured"])
def test_a_cell_of_any_other_magic_defines_nothing(magic):
    try:
        found = constants(f"{magic}\nN = 4")
    except SyntaxError:
        return
    assert "N" not in found
