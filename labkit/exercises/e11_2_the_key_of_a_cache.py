"""Exercise 11.2: the key under which a choice is kept: as long as it must be, and no longer."""

from typing import NamedTuple

from labkit.exercises.exercise import Beyond, Exercise, Questions


class Call(NamedTuple):
    """A convolution as it is called: all that could stand in a key."""

    x: tuple[int, ...]  # shapes
    w: tuple[int, ...]
    stride: int | tuple[int, int]
    padding: int | tuple[int, int, int, int]
    layout: str
    format: str
    limit_bytes: int | None
    gpu: str
    address: int  # of x in memory
    stream: int


BASE = Call((8, 16, 12, 34), (32, 16, 3, 3), 1, 1, "NCHW", "float32", 2**20, "H100", 4096, 0)
SAME = ({"address": 8192}, {"stream": 7}, {"stride": (1, 1)}, {"padding": (1, 1, 1, 1)})
OTHERS = (
    {"x": (8, 16, 34, 12)},
    {"x": (8, 16, 123, 4)},
    {"x": (81, 16, 12, 34)},
    {"x": (16, 16, 12, 34)},
    {"w": (64, 16, 3, 3)},
    {"w": (32, 8, 3, 3)},
    {"w": (32, 16, 1, 3)},
    {"w": (32, 16, 3, 1)},
    {"stride": 2},
    {"stride": (1, 2)},
    {"stride": (2, 1)},
    {"padding": 0},
    {"padding": (1, 1, 0, 0)},
    {"padding": (0, 0, 1, 1)},
    {"padding": (0, 1, 0, 1)},
    {"padding": (1, 0, 1, 0)},
    {"padding": (2, 0, 1, 1)},
    {"padding": (1, 1, 2, 0)},
    {"padding": (1, 1, 0, 2)},
    {"layout": "NHWC"},
    {"format": "bfloat16"},
    {"format": "float16"},
    {"limit_bytes": None},
    {"limit_bytes": 0},
    {"limit_bytes": 2**20 - 1},
    {"gpu": "H200"},
    {"gpu": "A100"},
)


def launch(rng, count):
    """Calls that differ in one thing each, or so many drawn ones, some of which differ in nothing that counts."""
    if count == 0:
        calls = [BASE, *(BASE._replace(**change) for change in (*SAME, *OTHERS))]
    else:
        calls = []
        for _ in range(count // 2):
            call = drawn(rng)
            calls += [call, in_other_words(rng, call), changed(rng, call)]

    def wrong(keys):
        known = {}
        for call, key in zip(calls, keys, strict=True):
            try:
                hash(key)
            except TypeError:
                return f"A key of {type(key).__name__} cannot be looked up: return a tuple of numbers and texts."
            known.setdefault(meaning(call), (call, key))
        owners = {}
        for call, key in zip(calls, keys, strict=True):
            first, its_key = known[meaning(call)]
            if key != its_key:
                names = difference(first, call)
                two = f"{its_key} and {key}"
                return f"The same problem has two keys, so its choice is not found again; {names}. They are {two}."
            owner = owners.setdefault(key, call)
            if meaning(owner) != meaning(call):
                return f"Two problems share a key, so one gets the choice of the other; {difference(owner, call)}."
        return ""

    label = f"{len(calls)} calls" if count else "calls that differ in one thing each"
    return Questions(label, tuple((call,) for call in calls), wrong)


def meaning(call: Call) -> tuple:
    """What a choice depends on."""
    stride = call.stride if isinstance(call.stride, tuple) else (call.stride,) * 2
    padding = call.padding if isinstance(call.padding, tuple) else (call.padding,) * 4
    return call._replace(stride=stride, padding=padding, address=0, stream=0)


def difference(one: Call, other: Call) -> str:
    """In what two calls differ, in words."""
    names = [name for name in Call._fields if getattr(one, name) != getattr(other, name)]
    return "they differ in " + ", ".join(
        f"`{name}` ({getattr(one, name)!r} and {getattr(other, name)!r})" for name in names
    )


def drawn(rng) -> Call:
    C, sides = int(rng.integers(1, 65)), rng.integers(5, 200, 2).tolist()
    taps = rng.choice((1, 3, 5), 2).tolist()
    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    return Call(
        (int(rng.integers(1, 130)), C, *sides),
        (int(rng.integers(1, 65)), C, *taps),
        stride[0] if rng.integers(2) else stride,
        int(rng.integers(2)) if rng.integers(2) else tuple(rng.integers(0, 2, 4).tolist()),
        str(rng.choice(("NCHW", "NHWC"))),
        str(rng.choice(("float32", "bfloat16", "float16"))),
        None if rng.integers(3) == 0 else int(rng.integers(0, 2**32)),
        str(rng.choice(("H100", "H200", "A100", "L4"))),
        int(rng.integers(1, 2**40)) * 256,
        int(rng.integers(0, 9)),
    )


def in_other_words(rng, call: Call) -> Call:
    """The same problem, called anew."""
    stride, padding = call.stride, call.padding
    if not isinstance(stride, tuple):
        stride = (stride, stride)
    elif len(set(stride)) == 1:
        stride = stride[0]
    if not isinstance(padding, tuple):
        padding = (padding,) * 4
    elif len(set(padding)) == 1:
        padding = padding[0]
    return call._replace(stride=stride, padding=padding, address=call.address + 256, stream=int(rng.integers(10, 99)))


def changed(rng, call: Call) -> Call:
    """Another problem, in one thing that is drawn."""
    N, C, H, W = call.x
    K, _, R, S = call.w
    stride, padding = meaning(call).stride, meaning(call).padding
    changes = (
        {"x": (N + 1, C, H, W)},
        {"x": (N, C, H + 1, W)},
        {"x": (N, C, H, W + 1)},
        {"x": (N, C, W, H) if H != W else (N, C, H, W + 2)},
        {"w": (K + 1, C, R, S)},
        {"w": (K, C, R + 2, S)},
        {"w": (K, C, R, S + 2)},
        {"stride": (stride[0] + 1, stride[1])},
        {"stride": (stride[0], stride[1] + 1)},
        *({"padding": tuple(p + (i == side) for i, p in enumerate(padding))} for side in range(4)),
        {"layout": "NCHW" if call.layout == "NHWC" else "NHWC"},
        {"format": "float32" if call.format != "float32" else "bfloat16"},
        {"limit_bytes": 0 if call.limit_bytes is None else None},
        {"limit_bytes": (call.limit_bytes or 0) + 1},
        {"gpu": "B200"},
    )
    return call._replace(**changes[rng.integers(len(changes))])


EXERCISE = Exercise(
    id="11.2",
    title="The key of a cache",
    task="Return the key under which the choice for a call is kept. Two problems must never have the same key, and "
    "the same problem must have the same key whenever and however it is called.",
    points=3,
    function="key",
    launch=launch,
    sizes=((0,),),
    drawn=((range(40, 80),), (range(40, 80),), (Beyond(90),)),
    machine="python",
)
