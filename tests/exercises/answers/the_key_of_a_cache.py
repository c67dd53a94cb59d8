"""Other answers to the-key-of-a-cache."""

from . import Answer, right, shortcut, wrong

_END = "call.layout, call.format, call.limit_bytes, call.gpu"

_RETURNED = f"return call.x, call.w, stride, padding, {_END}"

_GROUPS = (
    "    return call.x",
    "    last = call.layout == 'NHWC'\n"
    "    taps = (call.w[0], call.w[1], call.w[2]) if last else (call.w[0], call.w[2], call.w[3])\n"
    "    groups = call.x[3] // call.w[3] if last else call.x[1] // call.w[1]\n"
    "    return call.x",
)

VARIANTS = (
    Answer("the bug itself", "result", ((_RETURNED, "return call.x, call.w, stride, padding, call.address"),)),
    Answer("no layout", "result", (("call.layout, ", ""),)),
    Answer("no format", "result", ((", call.format", ""),)),
    Answer("no limit", "result", ((", call.limit_bytes", ""),)),
    Answer("no GPU", "result", ((", call.gpu", ""),)),
    Answer("no stride", "result", (("stride, padding, call.layout", "padding, call.layout"),)),
    Answer("no padding", "result", (("stride, padding, call.layout", "stride, call.layout"),)),
    Answer("no limit taken for none", "result", (("call.limit_bytes", "call.limit_bytes or 0"),)),
    Answer("the stride as it is called", "result", (("w, stride, padding", "w, call.stride, padding"),)),
    Answer("the padding as it is called", "result", (("stride, padding, call", "stride, call.padding, call"),)),
    Answer("the stream", "result", (("call.gpu", "call.gpu, call.stream"),)),
    Answer("the address", "result", (("call.gpu", "call.gpu, call.address"),)),
    Answer("all of the call", "result", ((_RETURNED, "return call"),)),
    Answer("the padding's sum", "result", (("stride, padding, call", "stride, sum(padding), call"),)),
    Answer("the sides in any order", "result", (("return call.x", "return sorted(call.x)[0], max(call.x)"),)),
    Answer("a list", "result", ((_RETURNED, f"return [call.x, call.w, stride, padding, {_END}]"),)),
    Answer(
        "digits run together",
        "result",
        ((_RETURNED, f"return ''.join(str(n) for n in call.x + call.w + stride + padding), {_END}"),),
    ),
    Answer("a hash", "refused", ((_RETURNED, "return hash((call.x, call.w))"),)),
    Answer("a sentence", "solved", ((_RETURNED, f"return str((call.x, call.w, stride, padding, {_END}))"),)),
    Answer(
        "what has no meaning replaced",
        "solved",
        cell="""
def in_full(value, count):
    return value if isinstance(value, tuple) else (value,) * count


def key(call):
    return (call[:2], in_full(call.stride, 2), in_full(call.padding, 4), call[4:8])
""",
    ),
)

RIGHT = (
    right(
        "a dictionary's items",
        ("return call.x, call.w, stride,", "return frozenset({'x': call.x, 'w': call.w}.items()), stride,"),
    ),
    right("text with marks between", ("return call.x, call.w,", "return ' '.join(str(n) for n in call.x + call.w),")),
    right("one key of two", ("return call.x, call.w, stride,", "shapes = call.x, call.w\n    return shapes, stride,")),
    right("with a list comprehension", ("(call.padding,) * 4", "tuple([call.padding for _ in range(4)])")),
    right("an f-string", ("return call.x,", "return f'{call.x}',")),
    right("as Python writes it", ("return call.x,", "return repr(call.x),")),
    right("groups in place of a group's channels", ("call.w, stride", "taps, groups, stride"), _GROUPS),
    right("one tuple of all numbers", ("call.x, call.w, stride, padding,", "call.x + call.w + stride + padding,")),
    right(
        "less than nothing for no limit",
        ("call.limit_bytes", "-1 if call.limit_bytes is None else call.limit_bytes"),
    ),
    right("the limit in KB", ("call.limit_bytes", "call.limit_bytes and call.limit_bytes / 1024")),
)

WRONG = (
    wrong("the limit run together with the GPU", ("call.limit_bytes, call.gpu", "f'{call.limit_bytes}{call.gpu}'")),
    wrong("a set", (_RETURNED, f"return frozenset((call.x, call.w, stride, padding, {_END}))")),
    wrong(
        "shapes in one order, without the layout",
        (
            _RETURNED,
            "(n, a, b, c), (k, d, e, f) = call.x, call.w\n"
            "    if call.layout == 'NHWC':\n        a, b, c, d, e, f = c, a, b, f, d, e\n"
            "    return n, a, b, c, k, d, e, f, stride, padding, call.format, call.limit_bytes, call.gpu",
        ),
    ),
    wrong("texts joined without a comma", ("return call.x", "return ''.join(map(str, call.x))")),
    wrong("the pixels of an image", ("return call.x", "return call.x[:2], call.x[2] * call.x[3]")),
    wrong("the taps of a filter", ("call.w, stride", "call.w[0], call.w[2] * call.w[3], stride")),
    wrong("the stride of rows", ("w, stride,", "w, stride[0],")),
    wrong("padding above and on the left", ("padding, call.layout", "padding[0], padding[2], call.layout")),
    wrong("padding of both axes", ("padding, call.layout", "padding[0] + padding[1], padding[2:], call.layout")),
    wrong("padding in any order", ("padding, call.layout", "tuple(sorted(padding)), call.layout")),
    wrong("strides in any order", ("w, stride,", "w, tuple(sorted(stride)),")),
    wrong("whether there is a limit", ("call.limit_bytes", "call.limit_bytes is None")),
    wrong("the limit in MB", ("call.limit_bytes", "(call.limit_bytes and call.limit_bytes // 1000000)")),
    wrong("no limit taken for -1 + 1", ("call.limit_bytes", "(0 if call.limit_bytes is None else call.limit_bytes)")),
    wrong("16 bits or 32", ("call.format", "call.format == 'float32'")),
    wrong("the GPU's first letter", ("call.gpu", "call.gpu[0]")),
    wrong("filters without their number", ("call.w,", "call.w[1:],")),
    wrong("images without their channels", ("call.x, call.w", "call.x[0], call.x[2:], call.w")),
    wrong("filters and channels in any order", ("call.w, stride", "tuple(sorted(call.w[:2])), call.w[2:], stride")),
    wrong("images and channels in any order", ("call.x, call.w", "tuple(sorted(call.x[:2])), call.x[2:], call.w")),
    wrong("images times channels", ("call.x, call.w", "call.x[0] * call.x[1], call.x[2:], call.w")),
    wrong("sides as one number", ("call.x, call.w", "call.x[:2], call.x[2] * 1000 + call.x[3], call.w")),
    wrong(
        "an image's shape as one number",
        ("call.x, call.w", "((call.x[0] * 256 + call.x[1]) * 256 + call.x[2]) * 256 + call.x[3], call.w"),
    ),
    wrong("taps as two digits", ("call.w, stride", "call.w[:2], call.w[2] * 10 + call.w[3], stride")),
    wrong("at most 7 taps", ("call.w, stride", "call.w[:2], min(call.w[2], 7), min(call.w[3], 7), stride")),
    wrong("the GPU's first word", ("call.gpu", "call.gpu[:4]")),
    wrong("strides up to 4", ("return call.x", "stride = min(stride[0], 4), min(stride[1], 4)\n    return call.x")),
    wrong("padding up to 2", ("stride, padding, call", "stride, tuple(min(p, 2) for p in padding), call")),
    wrong(
        "padding in base 4",
        ("stride, padding, call", "stride, 16 * padding[0] + 4 * padding[1] + padding[2], padding[3], call"),
    ),
    wrong("padding run together", ("stride, padding, call", "stride, ''.join(str(p) for p in padding), call")),
    wrong("strides run together", ("stride, padding, call", "''.join(str(n) for n in stride), padding, call")),
    wrong("limits of up to 8 GB", ("call.limit_bytes", "call.limit_bytes and min(call.limit_bytes, 8589934592)")),
    wrong(
        "a terabyte for no limit",
        ("call.limit_bytes", "(1000000000000 if call.limit_bytes is None else call.limit_bytes)"),
    ),
    wrong("whether the stream is a new one", ("call.gpu", "call.gpu, call.stream > 100")),
)

SHORTCUTS = (
    shortcut("the call itself", cell="def key(call):\n    return call\n"),
    shortcut("always the same", cell="def key(call):\n    return 0\n"),
    shortcut("always another", cell="COUNT = [0]\n\n\ndef key(call):\n    COUNT[0] += 1\n    return COUNT[0]\n"),
    shortcut("its place in memory", cell="def key(call):\n    return id(call)\n"),
    shortcut("a hash", cell="def key(call):\n    return hash(call[:8])\n"),
    shortcut("another's function", cell="from labkit.exercises.the_key_of_a_cache import normalise as key\n"),
    shortcut("what is equal to all", cell="def key(call):\n    return float('nan')\n"),
    shortcut("a promise", cell="def key(call):\n    return (n for n in call)\n"),
    shortcut("a function", cell="def key(call):\n    return call.x, lambda: call\n"),
    shortcut("itself", cell="def key(call):\n    return call.x, str(key)\n"),
    shortcut("all sums", cell="def key(call):\n    return sum(call.x), sum(call.w), call[4:8]\n"),
    shortcut("text without order", cell="def key(call):\n    return ''.join(sorted(str(call[:8])))\n"),
)
