"""Other answers to exercise 07.1."""

from . import Variant

_SIZES = "P, Q = (H + stride - 1) // stride, (W + stride - 1) // stride"
_TOP = "max(0, (P - 1) * stride + R - H) // 2"
_LEFT = "max(0, (Q - 1) * stride + S - W) // 2"

_FROM_THE_END = """
@cuda.jit
def same_size(x, w, y, stride):
    q, p, k = cuda.grid(3)
    C, H, W = x.shape
    R, S = w.shape[2], w.shape[3]
    P = H // stride + (H % stride != 0)
    Q = W // stride + (W % stride != 0)
    if p >= P or q >= Q:
        return
    rows, columns = P * stride - stride + R - H, Q * stride - stride + S - W
    top = rows // 2 if rows > 0 else 0
    left = columns // 2 if columns > 0 else 0
    total = np.float32(0)
    for r in range(max(0, top - p * stride), min(R, H + top - p * stride)):
        for s in range(max(0, left - q * stride), min(S, W + left - q * stride)):
            for c in range(C):
                total += w[k, c, r, s] * x[c, p * stride - top + r, q * stride - left + s]
    y[k * P * Q + p * Q + q] = total
"""

VARIANTS = (
    Variant("the bug itself", "unwritten", ((_SIZES, "P, Q = H // stride, W // stride"),)),
    Variant("half the filter in front", "result", ((_TOP, "R // 2"), (_LEFT, "S // 2"))),
    Variant("half of what is left of the filter", "result", ((_TOP, "(R - 1) // 2"), (_LEFT, "(S - 1) // 2"))),
    Variant("the odd zero in front", "result", ((_TOP, f"(1 + {_TOP[:-5]}) // 2"),)),
    Variant("fewer zeros than none", "result", ((_TOP, "((P - 1) * stride + R - H) // 2"),)),
    Variant("zeros for a stride of one", "result", ((_LEFT, "max(0, Q - 1 + S - W) // 2"),)),
    Variant("one output too many", "bounds", ((_SIZES, "P, Q = H // stride + 1, W // stride + 1"),)),
    Variant("a stride of one", "result", (("p * stride + r - top", "p + r - top"),)),
    Variant("outputs by columns", "result", (("(k * P + p) * Q + q", "(k * Q + q) * P + p"),)),
    Variant("no zeros: what lies outside is loaded", "bounds", (("if 0 <= row < H and 0 <= col < W:", "if True:"),)),
    Variant("sums in float64", "budget", (("total = np.float32(0)", "total = 0.0"),)),
    Variant("ceilings by negation", "solved", ((_SIZES, "P, Q = -(-H // stride), -(-W // stride)"),)),
    Variant("only the taps that lie inside", "solved", cell=_FROM_THE_END),
)
