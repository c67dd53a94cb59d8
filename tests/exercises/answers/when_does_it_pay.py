"""Other answers to when-does-it-pay."""

from . import Answer, right, shortcut, wrong

_RETURN = "    return -(-cost // gain) if gain > 0 else None"
_COUNT_UP = """
def smallest_batch(rows, columns, weight_bits, bits, ridge):
    batch = 1
    while 16 * rows * columns * batch < ridge * (weight_bits * rows * columns + bits * batch * (rows + columns)):
        batch += 1
        if batch > 3000:
            return None
    return batch
"""
_BISECT = """
def reaches(rows, columns, weight_bits, bits, ridge, batch):
    moved = weight_bits * rows * columns + bits * batch * (rows + columns)
    return 2 * rows * columns * batch * 8 >= ridge * moved


def smallest_batch(rows, columns, weight_bits, bits, ridge):
    if ridge * bits * (rows + columns) >= 16 * rows * columns:
        return None
    high = 1
    while not reaches(rows, columns, weight_bits, bits, ridge, high):
        high = high * 2
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if reaches(rows, columns, weight_bits, bits, ridge, middle):
            high = middle
        else:
            low = middle
    return high
"""

VARIANTS = (
    Answer("the ridge itself", "result", ((_RETURN, "    return ridge"),), mistake="the batch were the ridge"),
    Answer(
        "inputs and outputs forgotten",
        "result",
        ((" - ridge * bits * (rows + columns)", ""),),
        mistake="inputs and outputs moved no bytes",
    ),
    Answer("outputs forgotten", "result", (("(rows + columns)", "columns"),), mistake="outputs moved no bytes"),
    Answer("inputs forgotten", "result", (("(rows + columns)", "rows"),), mistake="inputs alone moved no bytes"),
    Answer("not rounded", "result", (("-(-cost // gain)", "cost / gain"),), mistake="the batch were not rounded"),
    Answer(
        "inputs times outputs",
        "result",
        (("(rows + columns)", "rows * columns"),),
        mistake="an input and its output had as many numbers as the weights",
    ),
    Answer(
        "the bits of the weights for all",
        "result",
        (("ridge * bits", "ridge * weight_bits"),),
        mistake="inputs and outputs had the bits of a weight",
    ),
    Answer("one FLOP per weight", "result", (("gain = 16", "gain = 8"),), mistake="a multiply-add were one FLOP"),
    Answer("bits taken for bytes", "result", (("gain = 16", "gain = 2"),), mistake="bits were bytes"),
    Answer("always a number", "refused", ((" if gain > 0 else None", ""),)),
    Answer("a layer that just pays for itself", "refused", (("gain > 0", "gain >= 0"),)),
    Answer("rounded down", "result", (("-(-cost // gain)", "cost // gain"),), mistake="the batch were rounded down"),
    Answer(
        "beyond the ridge",
        "result",
        (("-(-cost // gain)", "cost // gain + 1"),),
        mistake="a batch that reaches the ridge exactly were too small",
    ),
    Answer("rounded to the nearest", "result", (("-(-cost // gain)", "round(cost / gain)"),)),
    Answer("zero in place of None", "result", (("else None", "else 0"),), mistake="a batch of 0 stood for none"),
    Answer("counted up so far", "result", cell=_COUNT_UP),
    Answer(
        "counted up without an end",
        "refused",
        cell=_COUNT_UP.replace("        if batch > 3000:\n            return None\n", ""),
    ),
    Answer("halved again and again", "solved", cell=_BISECT),
)

RIGHT = (
    right(
        "in bytes",
        ("16 * rows * columns", "2 * rows * columns"),
        ("ridge * bits * (", "ridge * bits / 8 * ("),
        ("cost = ridge * weight_bits *", "cost = ridge * weight_bits / 8 *"),
    ),
    right("a quotient of floats", ("-(-cost // gain)", "int(cost / gain) + (cost % gain > 0)")),
    right("an if", (_RETURN, "    if gain <= 0:\n        return None\n    return (cost + gain - 1) // gain")),
    right(
        "by `divmod`",
        (
            _RETURN,
            "    if gain <= 0:\n        return None\n    n, rest = divmod(cost, gain)\n    return n + (rest > 0)",
        ),
    ),
    right("rounded up by hand", ("-(-cost // gain)", "cost // gain + (cost % gain > 0)")),
    right(
        "divmod",
        (
            _RETURN,
            "    whole, rest = divmod(cost, gain) if gain > 0 else (None, 0)\n    return whole + 1 if rest else whole",
        ),
    ),
)

WRONG = (
    wrong("no more than a million", (_RETURN, "    return min(-(-cost // gain), 1_000_000) if gain > 0 else None")),
    wrong("a tiny rest left out", ("-(-cost // gain)", "int(cost / gain + 0.999999)")),
    wrong("square layers", ("(rows + columns)", "2 * rows")),
    wrong("16 bits", ("ridge * bits", "ridge * 16")),
    wrong("small layers never", ("if gain > 0 else", "if min(rows, columns) > 600 else")),
)

SHORTCUTS = (
    shortcut(
        "a table of the layers of the task",
        cell="""
BATCHES = {(4096, 4096, 16, 16, 295): 345, (1024, 1024, 16, 16, 295): 697, (4096, 4096, 4, 16, 295): 87}


def smallest_batch(rows, columns, weight_bits, bits, ridge):
    return BATCHES.get((rows, columns, weight_bits, bits, ridge))
""",
    ),
)
