"""Other answers to exercise 11.2."""

from . import Variant

_END = "call.layout, call.format, call.limit_bytes, call.gpu"
_RETURNED = f"return call.x, call.w, stride, padding, {_END}"

VARIANTS = (
    Variant("the bug itself", "result", ((_RETURNED, "return call.x, call.w, stride, padding, call.address"),)),
    Variant("no layout", "result", (("call.layout, ", ""),)),
    Variant("no format", "result", ((", call.format", ""),)),
    Variant("no limit", "result", ((", call.limit_bytes", ""),)),
    Variant("no GPU", "result", ((", call.gpu", ""),)),
    Variant("no stride", "result", (("stride, padding, call.layout", "padding, call.layout"),)),
    Variant("no padding", "result", (("stride, padding, call.layout", "stride, call.layout"),)),
    Variant("no limit taken for none", "result", (("call.limit_bytes", "call.limit_bytes or 0"),)),
    Variant("the stride as it is called", "result", (("w, stride, padding", "w, call.stride, padding"),)),
    Variant("the padding as it is called", "result", (("stride, padding, call", "stride, call.padding, call"),)),
    Variant("the stream", "result", (("call.gpu", "call.gpu, call.stream"),)),
    Variant("the address", "result", (("call.gpu", "call.gpu, call.address"),)),
    Variant("all of the call", "result", ((_RETURNED, "return call"),)),
    Variant("the padding's sum", "result", (("stride, padding, call", "stride, sum(padding), call"),)),
    Variant("the sides in any order", "result", (("return call.x", "return sorted(call.x)[0], max(call.x)"),)),
    Variant("a list", "result", ((_RETURNED, f"return [call.x, call.w, stride, padding, {_END}]"),)),
    Variant(
        "digits run together",
        "result",
        ((_RETURNED, f"return ''.join(str(n) for n in call.x + call.w + stride + padding), {_END}"),),
    ),
    Variant("a hash", "refused", ((_RETURNED, "return hash((call.x, call.w))"),)),
    Variant("a sentence", "solved", ((_RETURNED, f"return str((call.x, call.w, stride, padding, {_END}))"),)),
    Variant(
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
