"""Constants known before a kernel runs: constant expressions, literals, dead branches.

numba is the oracle: of the types, and of what compiles.
"""

import importlib

import numpy as np
import pytest
from cells import kernel_in, run_cell
from numba import uint64
from random_kernels.oracles import inferred_types

import labkit
from labkit.simulator import run
from labkit.simulator.arguments import typed_arguments
from labkit.simulator.errors import KernelError

LENGTH = 8
BIG, LEAST = 2**64 - 1, -(2**63)
OUTSIDE = dict(
    TILE=8, ONE=1, MINUS=-1, BIG=BIG, LEAST=LEAST, FLAG=True, SHAPE=(4, 8), HALF=0.5, TEXT="b", uint64=uint64,
)  # fmt: skip
DEVICE = """
@cuda.jit(device=True)
def filled(n):
    s = cuda.local.array(n, float32)
    return s.size
"""


def cell(body):
    lines = "".join(f"    {line}\n" for line in ["i = cuda.grid(1)", *body.split("\n")])
    return f"{DEVICE}\n@cuda.jit\ndef kernel(x, out):\n{lines}"


def kernel_of(body):
    return kernel_in(cell(body), "kernel", **OUTSIDE)


def arguments():
    return np.arange(LENGTH) + 1.0, np.zeros(LENGTH, np.complex128)


def simulated(body, threads=1):
    return labkit.simulate(kernel_of(body), 1, threads, *arguments())


def value_of(body):
    """Return the value of the variable v that a kernel stores."""
    return simulated(f"{body}\nout[0] = v").outputs[1][0]


def refusal(body):
    with pytest.raises(KernelError) as refused:
        simulated(body)
    return str(refused.value)


def ours(body):
    """The types of the variables in the simulator."""
    kinds, _ = typed_arguments(["x", "out"], arguments(), ())
    return run._program(kernel_of(body).py_func, kinds, watch=False).variables


def numbas(body):
    """The types that numba gives the variables; an error where it refuses the kernel."""
    scope = run_cell(cell(body), **OUTSIDE, cuda=importlib.import_module("numba.cuda"))
    return inferred_types(scope["kernel"].py_func, arguments())


def assert_as_in_numba(body):
    found, known = ours(body), numbas(body)
    assert {name: {str(kind) for kind in found[name]} for name in known} == known


# --- numbers ---------------------------------------------------------------------------------------

COMPUTED = [
    "10 ** -3", "2 ** 64 - 1", "1 << 63", "(-8) ** 0.5", "(2 ** 63 - 1) + 1", "-(2 ** 63)", "0xFFFFFFFFFFFFFFFF // 2",
    "2 ** 64 * 1.5", "2 ** 64 % 1000", "0.1 + 0.2", "1 + 2j", "2 ** -1 + 3 ** -2", "1e308 * 10", "~True", "-True",
    "not 0", "True & False", "5.5 % -2", "__debug__", "((4, 8) * 2)[3]", "(4, 8.5)[1]", "b'text'[0]", "min(2 ** -1, 3)",
]  # fmt: skip


@pytest.mark.parametrize("text", COMPUTED)
def test_a_constant_expression_has_pythons_value(text):
    assert value_of(f"v = {text}") == complex(eval(text))


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("text", [*COMPUTED, "x.size * 10 ** -3", "x.size + 2 ** 63", "max(1 << 63, 3)", "TILE * 2"])
def test_a_constant_expression_has_the_type_of_its_value(text):
    assert_as_in_numba(f"v = {text}")


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("v = 2 ** 64", 2**64),
        ("v = 1 << 64", 2**64),
        ("v = ~0xFFFFFFFFFFFFFFFF", -(2**64)),
        ("v = x[10 ** 30]", 10**30),
    ],
)
def test_a_constant_of_more_than_64_bits_is_refused(body, number):
    assert f"{number} does not fit into 64 bits; use smaller numbers, or floats" in refusal(body)


RUN_TIME = [
    ("2 ** 200", 0),
    ("2 ** 200 - 1", -1),
    ("0 ** -1", LEAST),
    ("TILE ** MINUS", 0),
    ("TILE ** -1", 0),
    ("TILE ** 2", 64),
    ("10.0 ** 400", np.inf),
    ("1 / 0", np.inf),
    ("-TILE", -8),
    ("-FLAG", -1),
    ("~FLAG", 0),
    ("-LEAST", LEAST),
    ("-BIG", 1),
    ("~BIG", 0),
    ("BIG + 1", 0),
    ("-HALF", -0.5),
]


@pytest.mark.parametrize(("text", "value"), RUN_TIME)
def test_what_python_leaves_has_numbas_value(text, value):
    assert value_of(f"v = {text}") == value


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("text", [text for text, _ in RUN_TIME])
def test_what_python_leaves_has_numbas_type(text):
    assert_as_in_numba(f"v = {text}")


def test_a_division_by_zero_is_not_computed_beforehand():
    assert [(f.kind, f.line) for f in simulated("out[0] = 3 + 1 // 0").errors] == [("zero-division", 9)]


def test_places_are_those_of_the_source():
    trace = simulated("out[2 * 3] = (1 +\n    2) * x[2 ** 2]\nout[7] = x[-1 * 2]")
    assert [(s.site.text, s.site.line, s.site.column) for s in trace.sites] == [
        ("x[2 ** 2]", 10, 13), ("out[2 * 3]", 9, 4), ("x[-1 * 2]", 11, 13), ("out[7]", 11, 4),
    ]  # fmt: skip
    assert trace.outputs[1][6] == 15
    assert [(f.kind, f.line, f.column) for f in trace.findings if f.kind == "negative-index"] == [
        ("negative-index", 11, 13)
    ]


def test_a_constant_counts_no_operation():
    assert simulated("out[0] = x[0] * (2.0 ** 3 - 1.5)").counters.flops == 1


def test_a_statement_that_is_a_constant_does_nothing():
    assert not simulated("10 ** 30\nNone\n'text' * 2\n(1, 2)\nout[0] = 1").errors


# --- sizes -----------------------------------------------------------------------------------------

SIZES = [
    ("s = cuda.shared.array(64 * 5, float32)", (320,)),
    ("s = cuda.shared.array((4 * 8, 2), float32)", (32, 2)),
    ("s = cuda.shared.array((4,) * 2, float32)", (4, 4)),
    ("s = cuda.shared.array((4,) + (8,), float32)", (4, 8)),
    ("s = cuda.local.array(shape=2 ** 3, dtype=float32)", (8,)),
    ("s = cuda.shared.array(-(-4), float32)", (4,)),
    ("s = cuda.shared.array((4, 8)[1], float32)", (8,)),
    ("s = cuda.shared.array((TILE, x.ndim), float32)", (8, 1)),
    ("s = cuda.shared.array(SHAPE[1], float32)", (8,)),
    ("s = cuda.shared.array(4 if 1 else TILE, float32)", (4,)),
    ("n = 4 * 8\ns = cuda.shared.array(n, float32)", (32,)),
    ("n = m = 4\ns = cuda.shared.array((n, m), float32)", (4, 4)),
    ("n = TILE\nm = n\ns = cuda.shared.array(m, float32)", (8,)),
    ("n: int = 8\ns = cuda.shared.array(n, float32)", (8,)),
    ("n = x.ndim\ns = cuda.shared.array((n, 2), float32)", (1, 2)),
    ("n, m = 4, 8\ns = cuda.shared.array((n, m), float32)", (4, 8)),
    ("n, m = 4, x.size\ns = cuda.shared.array(n, float32)", (4,)),
    ("n, (m, k) = TILE, (2, 4)\ns = cuda.shared.array((n, m, k), float32)", (8, 2, 4)),
    ("n, m = SHAPE\ns = cuda.shared.array((n, m), float32)", (4, 8)),
    ("t = (TILE, 4)\ns = cuda.shared.array(t, float32)", (8, 4)),
    ("t = TILE, x.size\ns = cuda.shared.array(t[0], float32)", (8,)),
]


@pytest.mark.parametrize(("body", "shape"), SIZES)
def test_a_size_is_what_numba_takes_for_a_literal(body, shape):
    trace = simulated(f"{body}\nout[0] = s.size")
    assert trace.array("s").shape == shape


NO_SIZES = [
    "s = cuda.shared.array(TILE * 2, float32)",
    "s = cuda.shared.array(-MINUS, float32)",
    "s = cuda.shared.array((TILE,) + (8,), float32)",
    "s = cuda.shared.array((TILE * 2, 4), float32)",
    "s = cuda.shared.array(x.size, float32)",
    "n = 4\nn += 4\ns = cuda.shared.array(n, float32)",
    "n = TILE * 2\ns = cuda.shared.array(n, float32)",
    "n, m = TILE * 2, 4\ns = cuda.shared.array(n, float32)",
    "t = (TILE * 2, 4)\ns = cuda.shared.array(t, float32)",
    "out[0] = filled(TILE * 2)",
    "out[0] = filled((TILE * 2, 4))",
    "out[0] = filled(-MINUS)",
    "out[0] = filled(x.size)",
]


@pytest.mark.parametrize("body", NO_SIZES)
def test_a_size_that_numba_computes_is_none(body):
    assert "must be a plain number or a name given outside the kernel" in refusal(body)


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("v = filled(2 * 4)", 8),
        ("v = filled(TILE)", 8),
        ("v = filled(SHAPE[0])", 4),
        ("n = 2 * 4\nv = filled(n)", 8),
        ("n, m = 4, x.size\nv = filled(n)", 4),
        ("v = filled((2 * 4, 3))", 24),
    ],
)
def test_a_device_function_is_given_literals(body, size):
    assert value_of(body) == size


@pytest.mark.needs("numba-cuda")
def test_numba_compiles_these_sizes_and_no_others():
    for body, _ in SIZES:
        numbas(f"{body}\nout[0] = s.size")
    for body in NO_SIZES:
        with pytest.raises(Exception, match="No implementation of function"):
            numbas(body)


# --- indices of tuples -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("v = (1, 2.5)[ONE]", 2.5),
        ("v = (1, 2.5)[MINUS]", 2.5),
        ("v = (1, 2.5)[2 - 1]", 2.5),
        ("n = 1\nv = (1, 2.5)[n]", 2.5),
        ("v = (1, 2.5)[x.ndim]", 2.5),
        ("v = (1, 2, 3)[TILE - 7]", 2),
        ("v = SHAPE[ONE - 1]", 4),
        ("n = 1\nv = (1, 2.5, 3)[n:][0]", 2.5),
        ("v = x[(2,) + ()]", 3),
        ("v = x[(1, 2)[0]]", 2),
    ],
)
@pytest.mark.needs("numba-cuda")
def test_an_index_into_a_tuple_is_a_literal_or_its_values_have_one_type(body, value):
    assert value_of(body) == value
    assert_as_in_numba(body)


@pytest.mark.parametrize("index", ["ONE - 1", "-ONE", "TILE - 7", "-ONE:", "TILE - 7:"])
@pytest.mark.needs("numba-cuda")
def test_an_index_that_numba_computes_does_not_choose_between_types(index):
    assert "plain number" in refusal(f"v = (1, 2.5, 3)[{index}]\nout[0] = 1")
    with pytest.raises(Exception, match="No implementation of function"):
        numbas(f"v = (1, 2.5, 3)[{index}]\nout[0] = 1")


# --- loops, conditions, text -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("v = 0\nfor k in [1, 2, 3 * 4]:\n    v += k", 15),
        ("v = 0\nfor k in [x.size, 2]:\n    v += k", 10),
        ("v = 0\nfor k, m in [(1, 2), (3, 4)]:\n    v += k * m", 14),
        ("v = 0\nfor k in (2 ** 64 - 1, 2 ** 63):\n    v = k", 2**63),
        ("v = 0\nfor k in range(2 ** 3, 0, -(2 ** 1)):\n    v += k", 20),
        ("v = x.size in [1, 2 ** 3]", 1),
        ("v = x.size not in [1, 2 ** 3]", 0),
        ("v = not (x.size in [TILE, 2])", 0),
    ],
)
@pytest.mark.needs("numba-cuda")
def test_a_list_that_is_only_looped_over_or_looked_through_is_a_tuple(body, value):
    assert value_of(body) == value
    numbas(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("t = [1, 2]", "a list does not exist on a GPU"),
        ("for a, b in zip([1, 2], (3, 4)):\n    out[0] = a", "a list does not exist on a GPU"),
        ("for k in {1, 2}:\n    out[0] = k", "a set does not exist on a GPU"),
        ("for k in [1, 2.5]:\n    out[0] = k", "`[1, 2.5]` holds values of several types"),
        ("for k in [2 ** 63, 1]:\n    out[0] = k", "`[2 ** 63, 1]` holds values of several types"),
        ("for k in []:\n    out[0] = k", "`[]` is empty"),
    ],
)
def test_other_lists_are_refused(body, reason):
    assert reason in refusal(body)


PRUNED = [
    "1 < 2 < 3", "4 < TILE < 16", "not 4 < TILE < 16", "TILE == 4 + 4", "x.ndim == 1", "TILE * 2", "__debug__", "None",
    "not None", "'text'", "...", "2 - 2", "TILE and 2 > 1", "not 16 < TILE < x[0]",
]  # fmt: skip
BOTH_SIDES = [
    "-TILE", "~TILE", "+TILE", "-TILE < 0", "TILE - 7 == 1", "TILE * 2 == 16", "SHAPE[0]", "SHAPE[0] == 4",
    "float32(2)", "(1 < 2) == True", "(TILE and TILE * 2) == 16", "4 < TILE < x.size", "abs(TILE)",
]  # fmt: skip


@pytest.mark.parametrize("test", [*PRUNED, *BOTH_SIDES])
@pytest.mark.needs("numba-cuda")
def test_numba_leaves_out_a_branch_where_it_knows_the_condition(test):
    body = f"v = 1 if {test} else 2.5"
    assert_as_in_numba(body)
    both = {str(kind) for kind in numbas("v = 1 if x.size else 2.5")["v"]}
    unknown = numbas(body)["v"] == numbas("v = 1 if x.size else 2.5")["v"]
    assert both == {"float64"} and (unknown or test in PRUNED)


@pytest.mark.parametrize("test", ["0", "False", "1 - 1", "TILE > 100", "None", "not TILE"])
@pytest.mark.needs("numba-cuda")
def test_a_loop_whose_condition_never_holds_is_left_out(test):
    body = f"v = 0\nwhile {test}:\n    v = 'a' + 3\nelse:\n    v = 2"
    assert value_of(body) == 2
    numbas(body)


@pytest.mark.parametrize("test", ["True", "1", "2 - 1", "TILE", "1 == 1"])
@pytest.mark.needs("numba-cuda")
def test_a_loop_without_an_end_of_its_own_ends_at_its_breaks(test):
    loop = f"while {test}:\n    v = uint64(3)\n    if x[0] > 0:\n        break\n    v = 2"
    body = f"v = 0\n{loop}\nelse:\n    v = 2.5\nw = v"
    assert_as_in_numba(body)
    assert value_of(body) == 3


@pytest.mark.parametrize("test", ["True", "TILE", "x.size > 0"])
def test_a_loop_that_nothing_ends_is_still_refused(test):
    assert f"`while {test}` never ends" in refusal(f"while {test}:\n    out[0] = 1")


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("'=' * 3 + '>', 2 ** -1", "===> 0.5"),
        ("f'text'", "text"),
        ("'a' f'b'", "ab"),
        ("f'', 1", " 1"),
        ("'text'[1], ('a', 'b')[1]", "e b"),
        ("2 ** 64 - 1", "18446744073709551615"),
    ],
)
def test_text_that_python_puts_together_is_printed(given, printed):
    assert simulated(f"print({given})\nout[0] = 1").printed == (printed,)


@pytest.mark.parametrize("given", ["'a' + TEXT", "f'{x.size}'", "f'a' + 'b'", "'%d' % 3", "'a' * TILE", "'a' * 5000"])
def test_text_that_a_thread_would_put_together_is_refused(given):
    assert "`print` in a kernel cannot format text" in refusal(f"print({given})")


# --- comparisons in a row, and what is only computed in some lanes -----------------------------------


@pytest.mark.parametrize(
    ("test", "holds"),
    [
        ("i < x.size < 2 + 7 * x[i]", [i < 8 < 2 + 7 * (i + 1) for i in range(8)] + [False] * 24),
        ("0 < i < 12 // i", [0 < i < 12 // max(i, 1) for i in range(32)]),
        ("0 < i <= y < 9", [0 < i < 9 for i in range(32)]),
        ("i != 0 and 12 // i > 2", [0 < i < 5 for i in range(32)]),
        ("i == 0 or 12 % i > 2", [i == 0 or 12 % i > 2 for i in range(32)]),
        ("i > 0 and y > 2", [i > 2 for i in range(32)]),
        ("-1 < i < 4 <= i + 3 in (4, 5)", [i in (1, 2) for i in range(32)]),
    ],
)
def test_a_later_test_is_made_where_the_earlier_ones_leave_it_open(test, holds):
    kernel = kernel_of(f"if i > 0:\n    y = i\nout[i] = {test}\nif {test}:\n    out[i] += 1")
    trace = labkit.simulate(kernel, 1, 32, np.arange(LENGTH) + 1.0, np.zeros(32))
    assert not trace.errors
    np.testing.assert_array_equal(trace.outputs[1], 2.0 * np.array(holds))


def test_a_variable_that_no_thread_has_set_may_stand_where_no_thread_comes():
    kernel = kernel_of("if i == 5:\n    y = 2\n    return\nif i < 0 and y > 2:\n    out[i] = 1")
    assert not [f for f in labkit.simulate(kernel, 1, 32, *arguments()).errors if f.kind == "uninitialised"]


def test_the_middle_of_a_chain_is_computed_once():
    trace = simulated("out[0] = 0 < x[2] * 2.0 < 9 < x[3] * 3.0")
    assert trace.outputs[1][0] == 1 and trace.counters.flops == 2
    assert [(s.site.text, s.accesses) for s in trace.sites if s.site.kind == "load"] == [("x[2]", 1), ("x[3]", 1)]


def test_a_chain_that_ends_early_makes_no_later_access():
    trace = simulated("out[0] = 5 < x[2] < x[3]")
    assert [s.site.text for s in trace.sites if s.accesses] == ["x[2]", "out[0]"]
