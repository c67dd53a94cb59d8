"""Other answers to exercise 11.4."""

from . import Variant

VARIANTS = (
    Variant("a key too few", "result", (("highest - lowest + 1", "highest - lowest"),)),
    Variant("keys from zero", "result", (("highest - lowest + 1", "highest + 1"),)),
    Variant("half of the pairs", "result", (("numbers * numbers", "numbers * (numbers - 1) // 2"),)),
    Variant("a round too many", "result", (("length < numbers", "length <= numbers"),)),
    Variant("as many rounds as numbers", "result", (("numbers * rounds", "numbers * numbers"),)),
    Variant("counting without its keys", "result", (("(numbers + keys)", "numbers"),)),
    Variant("counting wherever merging fits", "result", (("if 4 * keys <=", "if 4 * numbers <="),)),
    Variant("merging wherever counting fits", "result", (("if 4 * numbers <=", "if 4 * keys <="),)),
    Variant("merging always", "result", (("if 4 * numbers <= free_bytes:", "if True:"),)),
    Variant("counting always", "result", (("if 4 * keys <= free_bytes:", "if True:"),)),
    Variant("not to the last byte", "result", (("if 4 * keys <=", "if 4 * keys <"),)),
    Variant("one byte a key", "result", (("if 4 * keys", "if keys"),)),
    Variant("the slowest", "result", (("return min", "return max"),)),
    Variant("never by insertion", "result", (("return min(times", "return min(list(times)[1:] or times"),)),
    Variant("another name", "result", (('"merge"', '"mergesort"'),)),
    Variant("a loop that does not end", "refused", (("length * 2", "length * 1"),)),
    Variant(
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
