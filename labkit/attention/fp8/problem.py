"""What the steps of the fp8 ladder compute: attention of e4m3 numbers, of which a block shares a scale.

The largest number of a block becomes 448, the largest of e4m3, and its scale is what 1 stands for. (Micikevicius and
others, FP8 Formats for Deep Learning, 2022; Shah and others, FlashAttention-3, 2024, section 3.3.)
"""

from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

from labkit import ladder
from labkit.attention.problem import LARGE, SOME, AttentionForward, within
from labkit.formats import E4M3, E4M3_LOSS, E4M3_MAX, FP32, Format

BLOCK = 128  # positions that share a scale
GROUP = 16  # keys within which V has an order of its own
ORDER = np.arange(GROUP).reshape(2, 4, 2).swapaxes(0, 1).ravel()  # which key stands where: 0 1 8 9 2 3 10 11 ...
LEAST = np.float32(E4M3_MAX * 2.0**-126)  # a block of less has no scale that is a normal number: it counts as zeros
# Sums of e4m3 products keep 13 bits behind the largest summand (`labkit.ptx.warpgroups.sums_of_e4m3`).
OF_SUMS = 2.0**-8  # of a tile of keys: 128 products lose half of the last bit in the mean, while the sum grows


@dataclass(frozen=True)
class Weights:
    """What a step makes of weights.

    Attributes
    ----------
    off
        How far a weight may be off, as a share of it; and `lost`, of the greatest weight of its row.
    are_summed
        Whether the total of a row is that of these weights, and not of those before they were rounded.
    """

    off: float = E4M3.rounding
    lost: float = 2.0**-18  # half a step of the least e4m3 numbers, where the greatest weight of a row is 2**8
    are_summed: bool = False


@dataclass(frozen=True)
class AttentionFP8(AttentionForward):
    """O = softmax(scale Q K^T) V for each head, of e4m3 numbers times the scales of their blocks, and log-sum-exp.

    Q and K are e4m3 with the axes batch, heads, positions, head_dim. V lies transposed, since tensor cores take 8-bit
    operands along the axis of the sum alone: a row for each number of head_dim, with the keys along it, filled up with
    zeros to a multiple of 16. Within each 16 the keys stand in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15, in
    which a thread of `wgmma` finds its scores: two neighbours of 8, and the same two of the next 8. BLOCK positions of
    a head share a scale, and so do BLOCK keys of V. O is bfloat16.

    Scores are to lie within 2**20 of zero: of much larger ones float32 has no fraction, and their weights may be lost.
    O is off by up to the 2**50th part of the largest value of a head, beside which blocks of far smaller ones do not
    count.
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
        """The attention of numbers in any format that has these sizes."""
        return AttentionForward(**asdict(self))

    def min_bytes(self, format: Format = E4M3) -> int:
        """Each array read or written once."""
        sizes = dict.fromkeys(self.float32_arrays, FP32.itemsize) | {"O": format.result.itemsize}
        return sum(int(np.prod(shape)) * sizes.get(name, 1) for name, shape in self.shapes.items())

    def operands(self, format: Format = E4M3, seed: int = 0) -> tuple:
        """Random operands of `AttentionForward`, quantised; O and log-sum-exp of NaN; and the problem."""
        Q, K, V, *_ = self.unquantised.operands(FP32, seed)
        O = np.full(self.shapes["O"], format.result.encode(np.nan))
        return *quantised(Q, K, V), O, np.full(self.shapes["lse"], np.nan, np.float32), self

    def expected(self, operands: tuple, format: Format = E4M3) -> dict[int, ladder.Expected]:
        """O and log-sum-exp of the numbers that the operands stand for, in float64, and how far a step may be off.

        What a step makes of weights, `weights` says. What quantisation made of other numbers is no error of a step.
        """
        *arrays, problem = operands  # which may be a part of this one
        Q, K, V = dequantised(*arrays[:6], rows=problem.rows, keys=problem.keys)
        made = problem.weights
        errors = made.off, made.lost, E4M3_LOSS, OF_SUMS, made.are_summed
        O, lse = within(problem, Q, K, V, np.asarray, format.result, *errors)
        return {self.ARRAYS.index("O"): O, self.ARRAYS.index("lse"): lse}

    def compared_outputs(self, expected: dict[int, ladder.Expected]) -> dict[int, ladder.Expected]:
        """O alone: beside log-sum-exp its errors would be small."""
        return {place: one for place, one in expected.items() if self.ARRAYS[place] == "O"}

    def part(self, operands: tuple) -> tuple:
        """Of a large problem some of the queries, the first and the last among them, of two of the batch."""
        if self.queries <= LARGE:
            return operands
        *arrays, _ = operands
        rows = np.unique(np.linspace(0, self.queries - 1, SOME).astype(int))
        batches = sorted({0, self.batch - 1})
        Q, K, V, *scales, O, lse = (np.asarray(X)[batches] for X in arrays)
        sizes = asdict(replace(self, batch=len(batches)))
        problem = _Part(**sizes, taken=tuple(map(int, rows)), weights=self.weights)
        return Q[:, :, rows], K, V, *scales, O[:, :, rows], lse[..., rows], problem


@dataclass(frozen=True)
class _Part(AttentionFP8):
    """Some of the queries of an attention."""

    taken: tuple[int, ...] = ()
    weights: Weights = AttentionFP8.weights

    @property
    def rows(self):
        return np.array(self.taken)


@dataclass(frozen=True)
class OfSummedWeights(AttentionFP8):
    """Allows a step to divide by the sum of rounded weights, and to take log-sum-exp from it."""

    weights = Weights(are_summed=True)


@dataclass(frozen=True)
class OfLinearCodes(AttentionFP8):
    """Allows a step to take a line from one power of two to the next for the exponential."""

    weights = Weights(off=0.08, lost=2.0**-14.8, are_summed=True)


Codes = UInt8[np.ndarray, "B H S D"]
Scales = Float32[np.ndarray, "B H blocks"]


def encoded(X: Float[np.ndarray, "B H S D"], block: int = BLOCK) -> tuple[Codes, Scales]:
    """Numbers as e4m3, and a scale for each `block` positions of a head; 1 where all of them are zeros.

    What is no number is NaN, and leaves the scale of its block to the others. Infinity spoils its block.
    """
    X = np.asarray(X, np.float32)
    starts = np.arange(0, X.shape[2], block)
    most = np.fmax.reduceat(np.fmax.reduce(np.abs(X), axis=-1), starts, axis=2)
    scales = np.where(most >= LEAST, most / np.float32(E4M3_MAX), np.float32(1))
    with np.errstate(invalid="ignore"):
        return E4M3.encode(X / _by_position(scales, np.arange(X.shape[2]), block)), scales


def decoded(codes: Codes, scales: Scales, rows: Int[np.ndarray, " S"], block: int = BLOCK):
    """What e4m3 numbers of these positions stand for, in float64."""
    return E4M3.decode(codes) * _by_position(scales.astype(np.float64), rows, block)


def _by_position(scales, rows, block):
    return scales[..., rows // block, None]


def quantised(Q, K, V) -> tuple:
    """Q, K, V and their scales as the steps take them, of float32 with the axes batch, heads, positions, head_dim."""
    (Q, q_scale), (K, k_scale), (V, v_scale) = map(encoded, (Q, K, V))
    batch, heads, keys, width = V.shape
    groups = -(-keys // GROUP)
    filled = np.zeros((batch, heads, groups * GROUP, width), np.uint8)
    filled[:, :, :keys] = V
    in_order = filled.reshape(batch, heads, groups, GROUP, width)[:, :, :, ORDER]
    V = in_order.reshape(filled.shape).swapaxes(2, 3)
    return Q, K, np.ascontiguousarray(V), q_scale, k_scale, v_scale


def dequantised(Q, K, V, q_scale, k_scale, v_scale, *, rows: Int[np.ndarray, " S"], keys: int) -> tuple:
    """Float64 for what `quantised` made, of these queries and all keys."""
    V = np.asarray(V).swapaxes(2, 3)
    batch, heads, filled, width = V.shape
    groups = V.reshape(batch, heads, filled // GROUP, GROUP, width)[:, :, :, np.argsort(ORDER)]
    V = groups.reshape(V.shape)[:, :, :keys]
    places = np.arange(keys)
    return decoded(np.asarray(Q), q_scale, rows), decoded(np.asarray(K), k_scale, places), decoded(V, v_scale, places)
