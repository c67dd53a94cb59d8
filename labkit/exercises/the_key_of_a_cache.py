"""The key of a cache of choices: all that the choice depends on, and nothing else."""

from typing import NamedTuple

from labkit.checking import Above, Exercise, Questions


class Call(NamedTuple):
    """A call of a convolution: all that a key could contain."""

    x: tuple[int, ...]  # shape
    w: tuple[int, ...]
    stride: int | tuple[int, int]
    padding: int | tuple[int, int, int, int]
    layout: str
    format: str
    limit_bytes: int | None
    gpu: str
    address: int  # of x in memory
    stream: int


BASE = Call((8, 16, 12, 16), (32, 8, 3, 16), 1, 1, "NCHW", "float32", 2**20, "H100", 4096, 0)  # in both layouts
SAME_PROBLEM = ({"address": 8192}, {"stream": 7}, {"stride": (1, 1)}, {"padding": (1, 1, 1, 1)})  # as BASE
LIMITS_BYTES = (0, 1, 2**20 - 1, 2**31, 2**32, 2**63, *(10**power for power in (6, 9, 10, 12, 15, 18)))
GPUS = ("H200", "H100 NVL", "H100 PCIe", "GH200", "A100", "A10", "L4", "L40", "T4", "RTX 4090", "RTX 4090 D")
FORMATS = ("bfloat16", "float16", "tf32", "float8_e4m3")
OTHER_PROBLEMS = (  # what may change, so that BASE becomes another problem
    *({"x": x} for x in ((9, 16, 12, 16), (8, 32, 12, 16), (8, 16, 13, 16), (8, 16, 12, 17), (81, 16, 12, 16))),
    *({"x": x} for x in ((16, 8, 12, 16), (4, 32, 12, 16), (16, 16, 12, 16), (8, 16, 16, 12), (8, 16, 24, 8))),
    *({"x": x} for x in ((8, 16, 121, 6), (8, 16, 6, 32), (88, 16, 12, 16), (8, 16, 12, 161))),
    *({"w": w} for w in ((64, 8, 3, 16), (32, 16, 3, 16), (16, 16, 3, 16), (32, 8, 4, 16), (32, 8, 3, 17))),
    *({"w": w} for w in ((64, 4, 3, 16), (8, 8, 3, 16), (32, 8, 16, 3), (32, 8, 6, 8), (32, 8, 31, 6))),
    {"x": (8, 32, 12, 16), "w": (8, 32, 3, 16)},
    *({"stride": stride} for stride in (2, (1, 2), (2, 1), (11, 1), (1, 11), (2, 3), (3, 2))),
    *({"padding": padding} for padding in (0, 2, (1, 1, 0, 0), (0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 1, 0))),
    *({"padding": padding} for padding in ((2, 0, 1, 1), (1, 1, 2, 0), (1, 1, 0, 2), (11, 1, 1, 1), (1, 11, 1, 1))),
    *({"padding": padding} for padding in ((2, 0, 2, 0), (0, 2, 0, 2), (2, 0, 0, 2), (1, 1, 11, 1), (1, 1, 1, 11))),
    {"layout": "NHWC"},
    *({"format": format} for format in FORMATS),
    *({"limit_bytes": limit_bytes} for limit_bytes in (None, *LIMITS_BYTES)),
    *({"gpu": gpu} for gpu in GPUS),
)
OTHER_PAIRS = (  # pairs that differ in more than one field
    ({"x": (8, 16, 5, 5), "w": (32, 16, 3, 3)}, {"x": (32, 16, 3, 3), "w": (8, 16, 5, 5)}),  # x and w exchanged
    ({"w": (32, 16, 3, 5)}, {"x": (8, 12, 16, 16), "w": (32, 3, 5, 16), "layout": "NHWC"}),  # one problem, two layouts
    ({"limit_bytes": 1, "gpu": "24 GB GPU"}, {"limit_bytes": 12, "gpu": "4 GB GPU"}),  # the same digits
)
STREAMS = 0, 1, 2, 7, 99, 2**20, 2**46 + 4096  # some are numbers, some addresses
# A key might multiply a size by one of these, and add the next size.
CARRIES = 2, 3, 4, 5, 8, 10, 16, 32, 64, 100, 128, 256, 512, 1000, 1024, 4096, 10**4, 2**16, 10**5, 10**6
NEIGHBOURS: dict[
    str, tuple[tuple[str, int], ...]
] = {  # field, and position of the first of two sizes, which groups need not divide
    "NCHW": (("x", 2), ("w", 2), ("stride", 0), ("padding", 0), ("padding", 1), ("padding", 2)),
    "NHWC": (("x", 0), ("x", 1), ("w", 1), ("stride", 0), ("padding", 0), ("padding", 1), ("padding", 2)),
}


def make_launch(rng, count):
    """Ask for calls with small differences (count 0), or for random ones, some of which are the same problem."""
    if count == 0:
        calls = [BASE, *(BASE._replace(**change) for change in (*SAME_PROBLEM, *OTHER_PROBLEMS))]
        calls += [BASE._replace(**change) for pair in OTHER_PAIRS for change in pair]
        for layout, neighbours in NEIGHBOURS.items():
            base = BASE._replace(layout=layout)
            calls += [call for pair in neighbours for n in CARRIES for call in make_carried_pair(base, *pair, carry=n)]
    else:
        calls = []
        for _ in range(count // 2):
            sizes, call = draw_call(rng)
            name, position = NEIGHBOURS[call.layout][rng.integers(len(NEIGHBOURS[call.layout]))]
            calls += [call, rewrite(rng, call), change_problem(rng, sizes, call)]
            calls += make_carried_pair(call, name, position, int(2 ** rng.uniform(1, 21)))

    def find_mistake(keys):
        first_calls = {}
        for call, key in zip(calls, keys, strict=True):
            if key is None:
                return "A key is None, which is the same for all calls: begin the line of the result with `return`."
            try:
                hash(key)
            except TypeError:
                return f"A key of {type(key).__name__} cannot be looked up: return a tuple of numbers and texts."
            first_calls.setdefault(normalise(call), (call, key))
        owners = {}
        for call, key in zip(calls, keys, strict=True):
            first, its_key = first_calls[normalise(call)]
            if key != its_key:
                why = f"{describe_difference(first, call)}. They are `{its_key}` and `{key}`"
                cure = explain_two_keys(first, call)
                return f"The same problem has two keys, so its choice is not found again; {why}.\n- {cure}"
            owner = owners.setdefault(key, call)
            if normalise(owner) != normalise(call):
                why = describe_difference(owner, call)
                cure = explain_one_key(owner, call, key)
                return f"Two problems share a key, so one gets the choice of the other; {why}.\n- {cure}"
        return ""

    label = f"{len(calls)} calls" if count else "calls that differ in little each"
    return Questions(label, tuple((call,) for call in calls), find_mistake)


def normalise(call: Call) -> Call:
    """Return what a choice depends on, written in one way."""
    stride = call.stride if isinstance(call.stride, tuple) else (call.stride,) * 2
    padding = call.padding if isinstance(call.padding, tuple) else (call.padding,) * 4
    return call._replace(stride=stride, padding=padding, address=0, stream=0)


def describe_difference(first: Call, second: Call) -> str:
    """Name the fields in which two calls differ, with both values."""
    names = differing_fields(first, second)
    return "they differ in " + ", ".join(
        f"`{name}` ({getattr(first, name)!r} and {getattr(second, name)!r})" for name in names
    )


def differing_fields(first: Call, second: Call) -> list[str]:
    """Return the fields in which two calls differ."""
    return [name for name in Call._fields if getattr(first, name) != getattr(second, name)]


def explain_two_keys(first: Call, second: Call) -> str:
    """Say what to do about two keys of one problem."""
    names = differing_fields(first, second)
    if new := [name for name in names if name in ("address", "stream")]:
        return f"Leave {' and '.join(f'`call.{name}`' for name in new)} out: it is new in each call."
    for name, count in (("stride", 2), ("padding", 4)):
        if name in names:
            return (
                f"A number for `{name}` means {count} equal ones: make it a tuple of {count} before it enters the key."
            )
    return "Build the key of what the call holds alone."


def explain_one_key(first: Call, second: Call, key) -> str:
    """Say what to do about one key of two problems."""
    if not isinstance(key, tuple):
        return f"A key of {type(key).__name__} mixes its parts: return a tuple, which keeps them apart."
    names = differing_fields(normalise(first), normalise(second))
    if {first.limit_bytes, second.limit_bytes} == {None, 0}:
        return "No limit is not a limit of 0: put `call.limit_bytes` itself into the key, without `or`."
    return f"Put {' and '.join(f'`call.{name}`' for name in names)} into the key as a whole."


def draw_call(rng) -> tuple[dict[str, int], Call]:
    """Draw a call with small or large sizes; return its sizes by name (G: channels per group) and the call."""
    groups, G = int(rng.choice((1, 1, 2, 3))), int(rng.integers(1, rng.choice((9, 65, 1000))))
    N, k = (int(rng.integers(1, rng.choice((9, 65)))) for _ in range(2))
    H, W = rng.integers(20, rng.choice((40, 200, 5000)), 2).tolist()
    R, S = rng.integers(1, 13, 2).tolist()
    sizes = {"N": N, "C": groups * G, "H": H, "W": W, "K": 12 * k, "G": G, "R": R, "S": S}
    stride = tuple(rng.integers(1, rng.choice((3, 5, 15)), 2).tolist())
    padding = tuple(rng.integers(0, rng.choice((2, 12)), 4).tolist())
    layout = str(rng.choice(("NCHW", "NHWC")))
    return sizes, Call(
        **make_shapes(sizes, layout),
        stride=stride[0] if rng.integers(2) else stride,
        padding=padding[0] if rng.integers(2) else padding,
        layout=layout,
        format=str(rng.choice(("float32", *FORMATS))),
        limit_bytes=(None, int(rng.choice((0, 2**20, 10**9))), int(2 ** rng.uniform(0, 45)))[rng.integers(3)],
        gpu=str(rng.choice(("H100", *GPUS))),
        address=int(rng.integers(1, 2**38)) * 256,
        stream=int(rng.choice(STREAMS)),
    )


def make_shapes(sizes, layout) -> dict[str, tuple[int, ...]]:
    """Return the shapes of images and filters in a layout."""
    orders = {"NCHW": ("NCHW", "KGRS"), "NHWC": ("NHWC", "KRSG")}[layout]
    return {name: tuple(sizes[axis] for axis in order) for name, order in zip("xw", orders)}


def rewrite(rng, call: Call) -> Call:
    """Write the same problem in another way."""
    changes = {}
    for name, count in (("stride", 2), ("padding", 4)):
        value = getattr(call, name)
        if not isinstance(value, tuple):
            changes[name] = (value,) * count
        elif len(set(value)) == 1:
            changes[name] = value[0]
    return call._replace(
        **changes, address=call.address + 256 * int(rng.integers(1, 9)), stream=int(rng.choice(STREAMS))
    )


def change_problem(rng, sizes: dict[str, int], call: Call) -> Call:
    """Change one random thing, so that it is another problem."""
    name = str(rng.choice(("N", "C", "H", "W", "K", "R", "S", "sides", "taps", "stride", "padding", "choice")))
    match name:
        case "sides" | "taps":
            one, other = "HW" if name == "sides" else "RS"
            longer = sizes[one] == sizes[other]
            return call._replace(**make_shapes(sizes | {one: sizes[other] + longer, other: sizes[one]}, call.layout))
        case "stride" | "padding":
            values = list(getattr(normalise(call), name))
            values[rng.integers(len(values))] += int(rng.choice((1, 2, 8)))
            return call._replace(**{name: tuple(values)})
        case "choice":
            others = {"format": ("float32", *FORMATS), "gpu": ("H100", *GPUS), "limit_bytes": (None, 0, 1)}
            if call.limit_bytes:
                others["limit_bytes"] += (call.limit_bytes + 1, call.limit_bytes - 1)
            name = str(rng.choice(list(others)))
            values = [value for value in others[name] if value != getattr(call, name)]
            return call._replace(**{name: values[rng.integers(len(values))]})
    more = {"C": sizes["C"], "K": 12}.get(name, int(rng.choice((1, 2, 8))))  # which groups divide
    return call._replace(**make_shapes(sizes | {name: sizes[name] + more}, call.layout))


def make_carried_pair(call: Call, name: str, position: int, carry: int) -> tuple[Call, ...]:
    """Make two problems that differ by a carry from one size to the next: equal if both sizes become one number."""
    value = getattr(normalise(call), name)
    front, (high, low), back = value[:position], value[position : position + 2], value[position + 2 :]
    carried = (high + 1, low), (high, low + carry)
    return tuple(call._replace(**{name: (*front, *middle, *back)}) for middle in carried)


EXERCISE = Exercise(
    title="The key of a cache",
    task="Return the key under which the choice for a call is cached. Two problems must never have the same key, and "
    "the same problem must have the same key whenever and however it is called.",
    points=3,
    function="key",
    make_launch=make_launch,
    sizes=((0,),),
    random_sizes=((range(40, 80),), (range(40, 80),), (Above(90),)),
    machine="python",
)
