"""Other answers to choose-a-sort."""

from . import Answer, right, shortcut, wrong

_LOOP = """    rounds, length = 0, 1
    while length < numbers:
        rounds, length = rounds + 1, length * 2
"""

VARIANTS = (
    Answer(
        "a key too few",
        "result",
        (("highest - lowest + 1", "highest - lowest"),),
        mistake="the highest key did not count",
    ),
    Answer("keys from zero", "result", (("highest - lowest + 1", "highest + 1"),), mistake="the keys began at 0"),
    Answer(
        "half of the pairs",
        "result",
        (("numbers * numbers", "numbers * (numbers - 1) // 2"),),
        mistake="insertion took each pair of numbers once",
    ),
    Answer(
        "a round too many",
        "result",
        (("length < numbers", "length <= numbers"),),
        mistake="a round too many were counted where the numbers are a power of two",
    ),
    Answer("as many rounds as numbers", "result", (("numbers * rounds", "numbers * numbers"),)),
    Answer(
        "counting without its keys",
        "result",
        (("(numbers + keys)", "numbers"),),
        mistake="counting took no time for its keys",
    ),
    Answer("counting wherever merging fits", "result", (("if 4 * keys <=", "if 4 * numbers <="),)),
    Answer("merging wherever counting fits", "result", (("if 4 * numbers <=", "if 4 * keys <="),)),
    Answer(
        "merging always", "result", (("if 4 * numbers <= free_bytes:", "if True:"),), mistake="merging needed no memory"
    ),
    Answer(
        "counting always", "result", (("if 4 * keys <= free_bytes:", "if True:"),), mistake="counting needed no memory"
    ),
    Answer("not to the last byte", "result", (("if 4 * keys <=", "if 4 * keys <"),)),
    Answer("one byte a key", "result", (("if 4 * keys", "if keys"),), mistake="a key took one byte"),
    Answer("the slowest", "result", (("return min", "return max"),)),
    Answer("never by insertion", "result", (("return min(times", "return min(list(times)[1:] or times"),)),
    Answer("another name", "result", (('"merge"', '"mergesort"'),)),
    Answer("a loop that does not end", "refused", (("length * 2", "length * 1"),)),
    Answer(
        "by comparisons",
        "solved",
        cell="""
def rounds_of(numbers):
    return 0 if numbers < 2 else 1 + rounds_of((numbers + 1) // 2)


def sort_by(numbers, lowest, highest, free_bytes, costs):
    best, least = "insertion", costs.insertion_ns * numbers * numbers
    merging = costs.merge_ns * numbers * rounds_of(numbers)
    if 4 * numbers <= free_bytes and merging < least:
        best, least = "merge", merging
    keys = 1 + highest - lowest
    if 4 * keys <= free_bytes and costs.counting_ns * (numbers + keys) < least:
        best = "counting"
    return best
""",
    ),
)

RIGHT = (
    right("rounds by bits", (_LOOP, "    rounds = (numbers - 1).bit_length() if numbers else 0\n")),
    right(
        "rounds by halves",
        (
            "    while length < numbers:\n        rounds, length = rounds + 1, length * 2\n",
            "    left = numbers\n    while left > 1:\n        rounds, left = rounds + 1, (left + 1) // 2\n",
        ),
    ),
    right("by get", ("key=lambda name: times[name]", "key=times.get")),
    right("sorted", ("min(times, key=lambda name: times[name])", "sorted(times, key=times.get)[0]")),
    right("factors in another order", ("costs.merge_ns * numbers * rounds", "rounds * (numbers * costs.merge_ns)")),
    right(
        "pairs of time and name",
        ("times = {", "times: dict[str, float] = {"),
        ("min(times, key=lambda name: times[name])", "min((time, name) for name, time in times.items())[1]"),
    ),
    right(
        "a function inside, an assertion and a square",
        (
            "    rounds, length = 0, 1\n",
            "    def fits(elements):\n        return 4 * elements <= free_bytes\n\n"
            "    assert lowest <= highest, 'no keys'\n    rounds, length = 0, 1\n",
        ),
        ("costs.insertion_ns * numbers * numbers", "costs.insertion_ns * numbers**2"),
        ("if 4 * keys <= free_bytes:", "if fits(keys):"),
    ),
    right("memory in elements", ("4 * keys <= free_bytes", "keys <= free_bytes // 4")),
)

WRONG = (
    wrong("rounds by the bits of the number itself", (_LOOP, "    rounds = numbers.bit_length()\n")),
    wrong("four bytes of change", ("4 * keys <=", "4 * keys - 4 <=")),
    wrong("memory for numbers and keys", ("4 * keys <=", "4 * (keys + numbers) <=")),
    wrong("memory for two copies", ("4 * numbers <=", "8 * numbers <=")),
    wrong("rounds up to a million numbers", ("while length < numbers", "while length < min(numbers, 1000000)")),
    wrong("twenty rounds", ("while length < numbers", "while length < numbers and rounds < 16")),
    wrong("keys of positive numbers", ("highest - lowest + 1", "highest - max(lowest, 0) + 1")),
    wrong("one round at least", ("rounds, length = 0, 1\n", "rounds, length = 1, 2\n")),
    wrong("insertion below 32 numbers", ("return min(", "return 'insertion' if numbers < 32 else min(")),
    wrong("the book's costs", ("costs.counting_ns", "2.0")),
    wrong("no keys beyond a million", ("if 4 * keys", "if keys < 1000000 and 4 * keys")),
    wrong(
        "insertion for few numbers alone",
        ("return min(", "return min(list(times)[1:], key=times.get) if numbers > 600 and len(times) > 1 else min("),
    ),
    wrong("merging never below 2 ns", ("costs.merge_ns *", "max(costs.merge_ns, 2.0) *")),
    wrong("merging never above 12 ns", ("costs.merge_ns *", "min(costs.merge_ns, 12.0) *")),
    wrong("a key too few in the time", ("(numbers + keys)", "(numbers + keys - 1)")),
    wrong("rounds that grow by less", ("length * 2", "length * 2 - 1 * (rounds > 0)")),
    wrong("rounds up to four million", ("while length < numbers", "while length < min(numbers, 4194304)")),
    wrong("keys in a gigabyte", ("if 4 * keys", "if keys <= 250000000 and 4 * keys")),
    wrong("keys that 31 bits count", ("highest - lowest + 1", "min(highest - lowest + 1, 2147483647)")),
)

SHORTCUTS = (
    shortcut(
        "counting is the fastest",
        cell='def sort_by(numbers, lowest, highest, free_bytes, costs):\n    return "counting"\n',
    ),
    shortcut(
        "all of them",
        cell='def sort_by(numbers, lowest, highest, free_bytes, costs):\n    return ["insertion", "merge"]\n',
    ),
    shortcut(
        "by the costs of one machine",
        cell="""
def sort_by(numbers, lowest, highest, free_bytes, costs):
    keys, best = highest - lowest + 1, "insertion"
    if 4 * numbers <= free_bytes and numbers > 100:
        best = "merge"
    if 4 * keys <= free_bytes and keys < 4 * numbers:
        best = "counting"
    return best
""",
    ),
    shortcut(
        "by rules of thumb",
        cell="""
def sort_by(numbers, lowest, highest, free_bytes, costs):
    if highest - lowest < 4 * numbers and 4 * (highest - lowest + 1) <= free_bytes:
        return "counting"
    return "insertion" if numbers < 64 or 4 * numbers > free_bytes else "merge"
""",
    ),
    shortcut(
        "the checker asked",
        cell="""
from labkit.exercises.choose_a_sort import times_ns


def sort_by(numbers, lowest, highest, free_bytes, costs):
    times = times_ns(numbers, lowest, highest, free_bytes, costs)
    return min(times, key=lambda name: times[name])
""",
    ),
)
