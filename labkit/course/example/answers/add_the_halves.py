"""Other answers to add-the-halves: what its check must say of them."""

from labkit.checking.answers import Answer, right, shortcut, wrong

SUM = "x[i] + x[i + out.size]"
ALL = "    if i < out.size:\n        out[i] = x[i] + x[i + out.size]"
IN_ONE_THREAD = "    if i == 0:\n        for j in range(out.size):\n            out[j] = x[j] + x[j + out.size]"

VARIANTS = (
    Answer("no guard", "bounds", (("if i < out.size:", "if i >= 0:"),)),
    Answer("neighbours", "result", ((SUM, "x[2 * i] + x[2 * i + 1]"),), mistake="neighbours were added"),
    Answer(
        "one element early",
        "result",
        ((SUM, "x[i] + x[i + out.size - 1]"),),
        mistake="the second half began one element early",
    ),
    Answer("the first half loaded twice", "budget", ((SUM, "max(x[i], x[i]) + x[i + out.size]"),)),
)
RIGHT = (right("n of x's length", (SUM, "x[i] + x[i + x.size // 2]")),)
WRONG = (wrong("right up to 200 elements", ("x[i + out.size]", "x[i + min(out.size, 200)]")),)
SHORTCUTS = (shortcut("one thread adds all", (ALL, IN_ONE_THREAD)),)
