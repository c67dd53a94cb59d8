"""Other answers to add-the-halves: what its check must say of them."""

from labkit.checking.answers import Answer, right, shortcut, wrong

SUM = "x[i] + x[i + y.size]"
ALL = "    if i < y.size:\n        y[i] = x[i] + x[i + y.size]"
IN_ONE_THREAD = "    if i == 0:\n        for j in range(y.size):\n            y[j] = x[j] + x[j + y.size]"

VARIANTS = (
    Answer("no guard", "bounds", (("if i < y.size:", "if i >= 0:"),)),
    Answer("neighbours", "result", ((SUM, "x[2 * i] + x[2 * i + 1]"),), mistake="neighbours were added"),
    Answer(
        "one element early",
        "result",
        ((SUM, "x[i] + x[i + y.size - 1]"),),
        mistake="the second half began one element early",
    ),
    Answer("the first half loaded twice", "budget", ((SUM, "max(x[i], x[i]) + x[i + y.size]"),)),
)
RIGHT = (right("n of x's length", (SUM, "x[i] + x[i + x.size // 2]")),)
WRONG = (wrong("right up to 200 elements", ("x[i + y.size]", "x[i + min(y.size, 200)]")),)
SHORTCUTS = (shortcut("one thread adds all", (ALL, IN_ONE_THREAD)),)
