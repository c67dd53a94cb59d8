"""Other answers to does-it-apply."""

from . import Answer, right, shortcut, wrong

_ALL = "return taps and strides and dilations and problem.groups == 1"

VARIANTS = (
    Answer("one side of the filter", "result", ((" and problem.S == 3", ""),)),
    Answer("the other side of the filter", "result", (("problem.R == 3 and ", ""),)),
    Answer("nine taps", "result", (("problem.R == 3 and problem.S == 3", "problem.R * problem.S == 9"),)),
    Answer("rows' stride alone", "result", ((" and problem.stride_w == 1", ""),)),
    Answer("columns' dilation alone", "result", (("problem.dilation_h == 1 and ", ""),)),
    Answer("no thought of groups", "result", ((" and problem.groups == 1", ""),)),
    Answer("any layout", "result", ((' or problem.layout != "NCHW"', ""),)),
    Answer("any format", "result", (('format != "float32" or ', ""),)),
    Answer("whole tiles alone", "result", ((_ALL, _ALL + " and problem.P % 4 == 0"),)),
    Answer("no padding", "result", ((_ALL, _ALL + " and problem.top == 0"),)),
    Answer("padding alike on all sides", "result", ((_ALL, _ALL + " and problem.top == problem.bottom"),)),
    Answer("no turned filter", "result", ((_ALL, _ALL + " and not problem.flipped"),)),
    Answer("at least a tile", "result", ((_ALL, _ALL + " and problem.P >= 4"),)),
    Answer("always", "result", cell="def applies(problem, format):\n    return True\n"),
    Answer("a text", "result", ((_ALL, "return 'yes'"),)),
    Answer("a fact that there is not", "refused", (("problem.layout", "problem.order"),)),
    Answer(
        "one comparison of tuples",
        "solved",
        cell="""
def applies(problem, format):
    ones = problem.stride_h, problem.stride_w, problem.dilation_h, problem.dilation_w, problem.groups
    return (problem.R, problem.S) == (3, 3) and set(ones) == {1} and (problem.layout, format) == ("NCHW", "float32")
""",
    ),
)

RIGHT = (
    right(
        "a helper",
        ("def applies(", "def is_plain(a, b):\n    return a == b == 1\n\n\ndef applies("),
        ("problem.stride_h == 1 and problem.stride_w == 1", "is_plain(problem.stride_h, problem.stride_w)"),
    ),
    right(
        "a constant",
        ("def applies(", "TAPS = 3\n\n\ndef applies("),
        ("problem.R == 3 and problem.S == 3", "problem.R == TAPS == problem.S"),
    ),
    right(
        "all of a list",
        (
            "return taps and strides and dilations and problem.groups == 1",
            "return all([taps, strides, dilations, problem.groups == 1])",
        ),
    ),
    right(
        "with types",
        ("def applies(problem, format):", "def applies(problem: Forward, format: str) -> bool:"),
        ("taps = problem.R == 3", "taps: bool = problem.R == 3"),
    ),
    right("a text that begins so", ('format != "float32"', "not format.startswith('float32')")),
    right(
        "strides that make one",
        ("problem.stride_h == 1 and problem.stride_w == 1", "problem.stride_h * problem.stride_w == 1"),
    ),
)

WRONG = (
    wrong("dilations below 3", ("problem.dilation_w == 1", "problem.dilation_w < 3")),
    wrong("one stride or the other", ("problem.stride_h == 1 and", "problem.stride_h == 1 or")),
    wrong("one dilation or the other", ("problem.dilation_h == 1 and", "problem.dilation_h == 1 or")),
    wrong("groups up to 4", ("problem.groups == 1", "problem.groups <= 4")),
    wrong("groups that leave several channels", ("problem.groups == 1", "problem.groups < problem.C")),
    wrong("images of a tile at least", ("taps = ", "taps = problem.H >= 6 and problem.W >= 6 and ")),
    wrong("more than one channel", ("taps = ", "taps = problem.C > 1 and ")),
    wrong("outputs in even rows", ("taps = ", "taps = problem.Q % 2 == 0 and ")),
    wrong("outputs as large as images, or without padding", ("taps = ", "taps = problem.top in (0, 1) and ")),
    wrong("every format of 32 bits or less", ('format != "float32"', 'format == "float64"')),
    wrong("all but bfloat16", ('format != "float32"', 'format == "bfloat16"')),
    wrong("taps that 3 divides", ("problem.R == 3 and problem.S == 3", "problem.R % 3 == problem.S % 3 == 0")),
    wrong(
        "square filters but three",
        ("problem.R == 3 and problem.S == 3", "problem.R == problem.S and problem.R not in (1, 2, 5)"),
    ),
    wrong("rows of 3 or 4 taps", ("problem.R == 3", "problem.R in (3, 4)")),
    wrong("strides but 2 and 3", ("problem.stride_h == 1", "problem.stride_h not in (2, 3)")),
    wrong("strides 1 and 4", ("problem.stride_w == 1", "problem.stride_w in (1, 4)")),
    wrong("dilations 1 and 4", ("problem.dilation_h == 1", "problem.dilation_h in (1, 4)")),
    wrong("odd groups", ("problem.groups == 1", "problem.groups % 2 == 1")),
    wrong("depthwise too", ("problem.groups == 1", "(problem.groups == 1 or 8 < problem.groups == problem.C)")),
    wrong("at most 16 images", ("taps = ", "taps = problem.N <= 16 and ")),
    wrong("at most 64 channels", ("taps = ", "taps = problem.C <= 64 and ")),
    wrong("at most 32 filters", ("taps = ", "taps = problem.K <= 32 and ")),
    wrong("small images", ("taps = ", "taps = problem.H <= 64 and ")),
    wrong("every 32 bits", ('format != "float32"', 'format[-2:] != "32"')),
    wrong(
        "not padded twice on all sides",
        ("taps = ", "taps = problem.top + problem.bottom + problem.left + problem.right < 8 and "),
    ),
)

SHORTCUTS = (
    shortcut("asked of the package", ("return taps", "return not problem.misfit({}) and taps")),
    shortcut(
        "the problem's own check",
        cell="def applies(problem, format):\n    return problem.R == 3 and not problem.misfit\n",
    ),
    shortcut(
        "the library asked",
        cell="from labkit import conv\n\n\n"
        "def applies(problem, format):\n    return len(conv.heuristic(problem)) > 9\n",
    ),
    shortcut("another's function", cell="from labkit.exercises.does_it_apply import find_misfit as applies\n"),
    shortcut(
        "true to all",
        cell="class Yes:\n    __eq__ = lambda a, b: True\n\n\ndef applies(problem, format):\n    return Yes()\n",
    ),
    shortcut(
        "a table of the published cases",
        cell="""
REFUSED = ((5, 5), (1, 1), (1, 3), (3, 1), (3, 5), (9, 1), (1, 9))


def applies(problem, format):
    ones = (problem.stride_h, problem.stride_w, problem.dilation_h, problem.dilation_w, problem.groups)
    listed = (problem.R, problem.S) in REFUSED or 2 in ones or problem.dilation_h == 3 or problem.groups == 8
    return format == "float32" and problem.layout == "NCHW" and not listed
""",
    ),
    shortcut(
        "a number that runs code",
        cell="""
import inspect


class Three(int):
    def __eq__(self, other):
        return bool(inspect.stack())


THREE = Three(3)


def applies(problem, format):
    return problem.R == THREE
""",
    ),
)
