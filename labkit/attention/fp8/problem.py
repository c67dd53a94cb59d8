"""The problem of the fp8 kernels: attention of e4m3 numbers, with a scale per block.

The numbers of a block are divided by its scale, which makes the largest one 448, the largest of e4m3. (Micikevicius and
others, FP8 Formats for Deep Learning, 2022; Shah and others, FlashAttention-3, 2024, section 3.3.)
"""

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

from labkit import ladder
from labkit.attention.problem import AttentionForward, expected_attention
from labkit.formats import E4M3, E4M3_LOSS, E4M3_MAX, FP32, Format

BLOCK = 128  # positions that share a scale
GROUP = 16  # keys within which V has an order of its own
ORDER = np.arange(GROUP).reshape(2, 4, 2).swapaxes(0, 1).ravel()  # keys in memory order: 0 1 8 9 2 3 10 11 ...
LEAST = np.float32(E4M3_MAX * 2.0**-126)  # a block of less has no scale that is a normal number: it counts as zeros
# Sums of e4m3 products keep 13 bits below the largest summand (`labkit.ptx.warpgroups.sums_of_e4m3`).
SUM_ERROR = 2.0**-8  # of a tile of keys: 128 products lose half of the last bit in the mean, while the sum grows


@dataclass(frozen=True)
class Weights:
    """Allowed errors of the weights of a kernel: exponentials of scores, before the division by their sum.

    Attributes
    ----------
    error
        Relative error of a weight.
    lost
        Absolute error of a weight, as a share of the greatest weight of its row.
    are_summed
        Whether row_sum is the sum of the rounded weights.
    """

    error: float = E4M3.rounding
    lost: float = 2.0**-18  # half a step of the least e4m3 numbers, where the greatest weight of a row is 2**8
    are_summed: bool = False


@dataclass(frozen=True)
class AttentionFP8(AttentionForward):
    """O = softmax(scale Q K^T) V for each head, of e4m3 numbers times the scales of their blocks, and log-sum-exp.

    Q and K are e4m3 with the axes batch, heads, positions, head_dim. V is transposed, since tensor cores take 8-bit
    operands only along the axis of the sum: a row per element of head_dim, with the keys along it, padded with zeros
    to a multiple of 16. Each 16 keys are in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15, in which a thread of
    `wgmma` has its scores: two neighbours of 8, and the same two of the next 8. BLOCK positions of a head share a
    scale. O is bfloat16.

    Scores must be within 2**20 of zero: float32 has no fraction for much larger ones, and their weights may be lost.
    O is off by up to 2**-50 times the largest value of a head.
    """

    ARRAYS = "Q", "K", "V", "q_scale", "k_scale", "v_scale", "O", "lse"
    float32_arrays, bf16_arrays = ("q_scale", "k_scale", "v_scale", "lse"), ("O",)
    needs_c_order = True
    weights: ClassVar[Weights] = Weights()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        of_queries, of_keys = (self.batch, self.heads), (self.batch, self.kv_heads)
        q_blocks, k_blocks = (-(-length // BLOCK) for length in (self.queries, self.keys))
        return {
            "Q": (*of_queries, self.queries, self.head_dim),
            "K": (*of_keys, self.keys, self.head_dim),
            "V": (*of_keys, self.head_dim, -(-self.keys // GROUP) * GROUP),
            "q_scale": (*of_queries, q_blocks),
            "k_scale": (*of_keys, k_blocks),
            "v_scale": (*of_keys, k_blocks),
            "O": (*of_queries, self.queries, self.head_dim),
            "lse": (*of_queries, self.queries),
        }

    @property
    def axes(self) -> dict[str, str]:
        return {"Q": "BHSD", "K": "BHSD", "V": "BHDS", "O": "BHSD"} | dict.fromkeys(self.float32_arrays, "BHS")

    @property
    def unquantised(self) -> AttentionForward:
        """The problem of these sizes without scales."""
        return AttentionForward(**asdict(self))

    def min_bytes(self, format: Format = E4M3) -> int:
        """Bytes of all arrays, each read or written once."""
        sizes = dict.fromkeys(self.float32_arrays, FP32.itemsize) | {"O": format.result.itemsize}
        return sum(int(np.prod(shape)) * sizes.get(name, 1) for name, shape in self.shapes.items())

    def operands(self, format: Format = E4M3, seed: int = 0) -> tuple:
        """Random operands of `AttentionForward`, quantised; O and log-sum-exp filled with NaN; and the problem."""
        Q, K, V, *_ = self.unquantised.operands(FP32, seed)
        O = np.full(self.shapes["O"], format.result.encode(np.nan))
        return *quantise_blocks(Q, K, V), O, np.full(self.shapes["lse"], np.nan, np.float32), self

    def expected(self, operands: tuple, format: Format = E4M3) -> dict[int, ladder.Expected]:
        """O and log-sum-exp of the dequantised operands in float64, and error bounds by `weights`.

        Errors of the quantisation itself do not count.
        """
        *arrays, problem = operands  # this one, or a part of it with fewer rows (indices of queries)
        Q, K, V = dequantise_blocks(*arrays[:6], rows=problem.rows, keys=problem.keys)
        weights = problem.weights
        errors = {"lost": weights.lost, "product_error": E4M3_LOSS, "sum_error": SUM_ERROR}
        errors["divides_by_rounded"] = weights.are_summed
        O, lse = expected_attention(problem, Q, K, V, np.asarray, format.result, weights.error, **errors)
        return {self.ARRAYS.index("O"): O, self.ARRAYS.index("lse"): lse}


@dataclass(frozen=True)
class SummedWeights(AttentionFP8):
    """Problem whose kernels may divide by the sum of rounded weights, and take log-sum-exp from it."""

    weights = Weights(are_summed=True)


@dataclass(frozen=True)
class LinearCodes(AttentionFP8):
    """Problem whose kernels may replace the exponential by a line from one power of two to the next."""

    weights = Weights(error=0.08, lost=2.0**-14.8, are_summed=True)


Codes = UInt8[np.ndarray, "B H S D"]
Scales = Float32[np.ndarray, "B H blocks"]


def encode_blocks(X: Float[np.ndarray, "B H S D"], block: int = BLOCK) -> tuple[Codes, Scales]:
    """Quantise to e4m3, with a scale per `block` positions of a head; 1 if all of them are zeros.

    NaN stays NaN and does not change the scale of its block. Infinity spoils its block.
    """
    X = np.asarray(X, np.float32)
    starts = np.arange(0, X.shape[2], block)
    max_abs = np.fmax.reduceat(np.fmax.reduce(np.abs(X), axis=-1), starts, axis=2)
    scales = np.where(max_abs >= LEAST, max_abs / np.float32(E4M3_MAX), np.float32(1))
    with np.errstate(invalid="ignore"):
        return E4M3.encode(X / _by_position(scales, np.arange(X.shape[2]), block)), scales


def decode_blocks(codes: Codes, scales: Scales, rows: Int[np.ndarray, " S"], block: int = BLOCK):
    """Dequantise the e4m3 numbers of these positions to float64."""
    return E4M3.decode(codes) * _by_position(scales.astype(np.float64), rows, block)


def _by_position(scales, rows, block):
    return scales[..., rows // block, None]


def quantise_blocks(Q, K, V) -> tuple:
    """Quantise float32 Q, K and V of layout BHSD; return them and their scales as kernels take them."""
    (Q, q_scale), (K, k_scale), (V, v_scale) = map(encode_blocks, (Q, K, V))
    batch, heads, keys, width = V.shape
    groups = -(-keys // GROUP)
    filled = np.zeros((batch, heads, groups * GROUP, width), np.uint8)
    filled[:, :, :keys] = V
    in_order = filled.reshape(batch, heads, groups, GROUP, width)[:, :, :, ORDER]
    V = in_order.reshape(filled.shape).swapaxes(2, 3)
    return Q, K, np.ascontiguousarray(V), q_scale, k_scale, v_scale


def dequantise_blocks(Q, K, V, q_scale, k_scale, v_scale, *, rows: Int[np.ndarray, " S"], keys: int) -> tuple:
    """Dequantise the result of `quantise_blocks` to float64, for these queries and all keys."""
    V = np.asarray(V).swapaxes(2, 3)
    batch, heads, filled, width = V.shape
    groups = V.reshape(batch, heads, filled // GROUP, GROUP, width)[:, :, :, np.argsort(ORDER)]
    V = groups.reshape(V.shape)[:, :, :keys]
    positions = np.arange(keys)
    return (
        decode_blocks(np.asarray(Q), q_scale, rows),
        decode_blocks(np.asarray(K), k_scale, positions),
        decode_blocks(V, v_scale, positions),
    )
