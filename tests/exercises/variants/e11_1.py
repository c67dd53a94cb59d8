"""Other answers to exercise 11.1."""

from . import Variant

_ALL = "return taps and strides and dilations and problem.groups == 1"

VARIANTS = (
    Variant("one side of the filter", "result", ((" and problem.S == 3", ""),)),
    Variant("the other side of the filter", "result", (("problem.R == 3 and ", ""),)),
    Variant("nine taps", "result", (("problem.R == 3 and problem.S == 3", "problem.R * problem.S == 9"),)),
    Variant("rows' stride alone", "result", ((" and problem.stride_w == 1", ""),)),
    Variant("columns' dilation alone", "result", (("problem.dilation_h == 1 and ", ""),)),
    Variant("no thought of groups", "result", ((" and problem.groups == 1", ""),)),
    Variant("any layout", "result", ((' or problem.layout != "NCHW"', ""),)),
    Variant("any format", "result", (('format != "float32" or ', ""),)),
    Variant("whole tiles alone", "result", ((_ALL, _ALL + " and problem.P % 4 == 0"),)),
    Variant("no padding", "result", ((_ALL, _ALL + " and problem.top == 0"),)),
    Variant("padding alike on all sides", "result", ((_ALL, _ALL + " and problem.top == problem.bottom"),)),
    Variant("no turned filter", "result", ((_ALL, _ALL + " and not problem.flipped"),)),
    Variant("at least a tile", "result", ((_ALL, _ALL + " and problem.P >= 4"),)),
    Variant("always", "result", cell="def applies(problem, format):\n    return True\n"),
    Variant("a text", "result", ((_ALL, "return 'yes'"),)),
    Variant("a fact that there is not", "refused", (("problem.layout", "problem.order"),)),
    Variant(
        "one comparison of tuples",
        "solved",
        cell="""
def applies(problem, format):
    ones = problem.stride_h, problem.stride_w, problem.dilation_h, problem.dilation_w, problem.groups
    return (problem.R, problem.S) == (3, 3) and set(ones) == {1} and (problem.layout, format) == ("NCHW", "float32")
""",
    ),
)
