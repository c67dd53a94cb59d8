"""The choice of a sort by size, range of keys and memory: the same kind of choice in another field."""

from typing import NamedTuple

from labkit.checking import Above, Exercise, Questions
from labkit.table import count_text


class Costs(NamedTuple):
    """Times measured on one machine."""

    insertion_ns: float  # per pair of numbers
    merge_ns: float  # per number and merge level
    counting_ns: float  # per number, and per possible key


COSTS = Costs(insertion_ns=0.5, merge_ns=6.0, counting_ns=2.0)
BYTES = 4  # per number
KEYS = 2**32  # different keys of 4 bytes
NO_SLOWER = 1 + 1e-9  # products in another order are rounded otherwise
CASES = (  # how many numbers, lowest and highest key, free bytes, costs
    (0, 0, 0, 0, COSTS),
    (1, 5, 5, 0, COSTS),
    (20, 0, 10**9, 10**6, COSTS),
    (10**6, 0, 255, 10**6, COSTS),
    (10**6, -128, 127, 1024, COSTS),
    (10**6, -128, 127, 1023, COSTS),
    (10**6, 0, 10**9, 4 * 10**6, COSTS),
    (10**6, 0, 10**9, 4 * 10**6 - 1, COSTS),
    (3000, 0, 60_000, 10**6, COSTS),
    (3000, 0, 9_000, 10**6, COSTS),
    (64, 0, 63, 256, COSTS),
    (64, 0, 63, 255, COSTS),
    (2, 7, 7, 4, Costs(50.0, 60.0, 2.0)),
    (3 * 10**6, 0, 19 * 10**7, 10**9, COSTS),
    (1024, 0, 5119, 10**6, Costs(1.0, 1.0, 1.0)),
    (1025, 0, 10_249, 10**6, Costs(10.0, 1.0, 1.0)),
)


def make_launch(rng, count):
    """Ask for the cases above (count 0), or for this many random ones."""
    calls = CASES if count == 0 else tuple(draw_case(rng) for _ in range(count))

    def find_mistake(answers):
        for arguments, answer in zip(calls, answers, strict=True):
            times = times_ns(*arguments)
            if answer not in list(times) or times[answer] > NO_SLOWER * min(times.values()):
                by_time = sorted(times.items(), key=lambda item: item[1])
                options = ", ".join(f"{name} {_describe_time(time)}" for name, time in by_time)
                numbers, lowest, highest, free_bytes, costs = arguments
                problem = f"{count_text(numbers, 'number')} from {lowest:,} to {highest:,}"
                room = count_text(free_bytes, "byte")
                return f"For {problem}, with {room} free and `{costs}`, the answer is {answer!r}. What fits: {options}."
        return ""

    return Questions(f"{count} choices" if count else "choices made for it", calls, find_mistake, MISTAKES)


def _describe_time(time_ns):
    return f"{time_ns:,.0f} ns" if time_ns >= 100 or not time_ns else f"{time_ns:.2g} ns"


def times_ns(
    numbers,
    lowest,
    highest,
    free_bytes,
    costs,
    merge_bytes=BYTES,
    key_bytes=BYTES,
    extra_level=False,
    takes_pairs_once=False,
    leaves_out_keys=False,
):
    """Return the time of each sort for which the memory is enough."""
    pairs = numbers * (numbers - 1) // 2 if takes_pairs_once else numbers * numbers
    levels, keys = max(numbers - 1, 0).bit_length(), highest - lowest + 1
    levels = numbers.bit_length() if extra_level else levels
    times = {"insertion": costs.insertion_ns * pairs}
    if merge_bytes * numbers <= free_bytes:
        times["merge"] = costs.merge_ns * numbers * levels
    if key_bytes * keys <= free_bytes:
        times["counting"] = costs.counting_ns * (numbers + keys * (not leaves_out_keys))
    return times


def find_fastest(*arguments, **sizes):
    """Return the name of the fastest sort."""
    times = times_ns(*arguments, **sizes)
    return min(times, key=lambda name: times[name])


BOTH_ENDS = "Where you count the keys, both ends are included: subtract `lowest` from `highest`, and add 1."
COMPARE_MEMORY = "Take a sort only if what it needs is at most `free_bytes`."
MISTAKES = (
    ("the highest key did not count", lambda n, low, high, *rest: find_fastest(n, low, high - 1, *rest), BOTH_ENDS),
    ("the keys began at 0", lambda n, low, high, *rest: find_fastest(n, 0, high, *rest), BOTH_ENDS),
    (
        "insertion took each pair of numbers once",
        lambda *call: find_fastest(*call, takes_pairs_once=True),
        "The table counts all numbers times all numbers: `numbers * numbers`.",
    ),
    ("merging needed no memory", lambda *call: find_fastest(*call, merge_bytes=0), COMPARE_MEMORY),
    ("counting needed no memory", lambda *call: find_fastest(*call, key_bytes=0), COMPARE_MEMORY),
    (
        "a round too many were counted where the numbers are a power of two",
        lambda *call: find_fastest(*call, extra_level=True),
        "As many rounds are needed as lengths double from 1 until one reaches `numbers`: stop there.",
    ),
    (
        "counting took no time for its keys",
        lambda *call: find_fastest(*call, leaves_out_keys=True),
        "Where you compute the time of counting, count the keys, too: it goes over all of them once.",
    ),
    ("a key took one byte", lambda *call: find_fastest(*call, key_bytes=1), "Counting needs 4 bytes for each key."),
)


def draw_case(rng):
    """Draw a case, often with two sorts of similar speed, or with memory that is just enough or one byte less."""
    costs = Costs(*(float(10**power) for power in rng.uniform(-2, 3, 3)))
    numbers = int(2 ** rng.uniform(0, 12 if rng.integers(2) else 34))
    if rng.integers(3) == 0:
        numbers = 2 ** int(rng.integers(0, 34)) + int(rng.integers(0, 2))
    keys = int(2 ** rng.uniform(0, 32))
    times = times_ns(numbers, 0, 0, BYTES * numbers, costs)
    if rng.integers(2):
        similar_ns = rng.uniform(0.93, 1.07) * min(times["insertion"], times["merge"])
        keys = min(max(1, int(similar_ns / costs.counting_ns) - numbers), KEYS)
    elif rng.integers(2) and numbers > 1:
        similar_ns = rng.uniform(0.93, 1.07) * times["insertion"] * costs.merge_ns / times["merge"]
        costs = costs._replace(merge_ns=float(similar_ns))
    lowest = int(rng.integers(KEYS - keys + 1)) - KEYS // 2
    memory = (BYTES * numbers, BYTES * numbers - 1, BYTES * keys, BYTES * keys - 1, *(2**60,) * 6, 10**6, 0)
    return numbers, lowest, lowest + keys - 1, memory[rng.integers(len(memory))], costs


EXERCISE = Exercise(
    title="Choose a sort",
    task='Return the fastest of "insertion", "merge" and "counting" that the free memory allows. '
    "The table says how long each takes and what it needs.",
    points=3,
    function="sort_by",
    make_launch=make_launch,
    sizes=((0,),),
    random_sizes=((range(200, 300),), (range(200, 300),), (Above(400),)),
    machine="python",
)
