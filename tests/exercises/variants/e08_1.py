"""Other answers to exercise 08.1."""

from . import Variant

_OUTPUTS = "n, p, q = npq // (P * Q), npq // Q % P, npq % Q"
_TAPS = "r, s, c = rsc // (S * C), rsc // C % S, rsc % C"
_SUM_BY_SUM = """
@cuda.jit
def lower(x, matrix, S, P, Q, stride):
    npq, rsc = cuda.grid(2)
    N, H, W, C = x.shape
    if rsc >= matrix.shape[0] or npq >= N * P * Q:
        return
    rs = rsc // C
    c = rsc - rs * C
    r = rs // S
    s = rs - r * S
    np_ = npq // Q
    q = npq - np_ * Q
    n = np_ // P
    p = np_ - n * P
    matrix[rsc, npq] = x[n, p * stride + r, q * stride + s, c]
"""

VARIANTS = (
    Variant("channels first", "result", ((_TAPS, "c, r, s = rsc // S % C, rsc // (S * C), rsc % S"),)),
    Variant("as in the chapter", "bounds", ((_TAPS, "c, r, s = rsc % C, rsc // S // C, rsc // S % C"),)),
    Variant("no remainder in the middle", "bounds", ((_OUTPUTS, "n, p, q = npq // (P * Q), npq // Q, npq % Q"),)),
    Variant("P and Q swapped", "bounds", ((_OUTPUTS, "n, p, q = npq // (P * Q), npq // P % Q, npq % P"),)),
    Variant("by columns", "result", ((_OUTPUTS, "n, p, q = npq // (P * Q), npq % P, npq // P % Q"),)),
    Variant(
        "images fastest",
        "result",
        ((_OUTPUTS, "n, p, q = npq % x.shape[0], npq // x.shape[0] // Q, npq // x.shape[0] % Q"),),
    ),
    Variant("s before r", "bounds", ((_TAPS, "s, r, c = rsc // (S * C), rsc // C % S, rsc % C"),)),
    Variant("no stride", "result", (("p * stride + r", "p + r"), ("q * stride + s", "q + s"))),
    Variant("a true division", "budget", ((_TAPS, "r, s, c = int(rsc / (S * C)), rsc // C % S, rsc % C"),)),
    Variant("no guard", "bounds", (("rsc < matrix.shape[0] and npq", "npq"),)),
    Variant("one after the other", "solved", cell=_SUM_BY_SUM),
    Variant("by divmod", "solved", ((_TAPS, "r, sc = divmod(rsc, S * C)\n        s, c = divmod(sc, C)"),)),
)
