"""Attention of a few queries per sequence to a cache, in pages or not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32, Int32, Shaped

from labkit.arrays.index_arrays import index_array
from labkit.arrays.operands import operand_format, order_of_axes, shape_text
from labkit.arrays.owners import owner_of
from labkit.arrays.views import as_strided
from labkit.arrays.workspace import Workspace
from labkit.attention.decode.problem import AttentionDecode
from labkit.attention.interface.choice import choose_for_cache
from labkit.attention.interface.heads import check_fit
from labkit.attention.problem import Layout, check_options
from labkit.calls.call import run_operation
from labkit.calls.operation import Operation, Result, call_of
from labkit.calls.plan import Plan, make_plan
from labkit.formats import BF16, FP16, Format
from labkit.ladder import Launch

FORMATS = BF16, FP16
ARRAYS = AttentionDecode.ARRAYS


@dataclass(frozen=True)
class CachedAttention(Operation):
    """A call of `attend_cached` without its arrays; for the options see there."""

    causal: bool = True
    scale: float | None = None
    layout: Layout = "BHSD"
    format: str | Format | None = None

    arrays, outputs, written, required = ARRAYS, ("O",), ("O", "lse"), ("Q", "K", "V")

    def __post_init__(self):
        check_options(self.causal, window=None, scale=self.scale, layout=self.layout)

    def with_format(self, operands: Mapping[str, object]) -> "CachedAttention":
        return replace(self, format=self._format(operands))

    def check(self, operands: Mapping[str, object]) -> None:
        for name, num_axes in {"Q": 4, "K": 4, "V": 4, "table": 2}.items():
            if name in operands and len(operands[name].shape) != num_axes:
                wanted = "batch and pages" if name == "table" else self.layout
                raise ValueError(f"{name} is {shape_text(operands[name].shape)}: give it {num_axes} axes, {wanted}")
        problem = self._problem(operands)
        check_fit(operands, problem, self._format(operands), "the other arrays")
        _check_values(problem, operands.get("lengths"), operands.get("table"))

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        Q = operands["Q"]
        return Result(like="Q", shape=tuple(Q.shape), axes=order_of_axes(Q))

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        problem = self._problem(operands)
        keys, batch = problem.keys, problem.batch
        defaults = {
            # views of the cached integers 0, 1, 2, ...: `keys` for each sequence (stride 0), and b for sequence b
            "lengths": lambda: as_strided(index_array(keys + 1), (batch,), (0,), begin_byte=4 * keys),
            "table": lambda: as_strided(index_array(batch), (batch, 1), (4, 4)),
            "lse": lambda: workspace.array("unreturned lse", problem.shapes["lse"], np.float32),
        }
        arrays = tuple(operands[name] if name in operands else defaults[name]() for name in ARRAYS)
        same_lengths = batch == 1 or "lengths" not in operands
        return choose_for_cache(arrays, problem, self._format(operands), workspace, same_lengths).launches

    def _problem(self, operands) -> AttentionDecode:
        """Return the problem of the arrays; raises if they make none."""
        q, k = (dict(zip(self.layout, operands[name].shape)) for name in "QK")
        page = k["S"] if "table" in operands else None
        keys = k["S"] * (1 if page is None else operands["table"].shape[1])
        sizes, options = (q["B"], q["H"], q["S"], q["D"], keys, k["H"]), (self.causal, None, self.scale, self.layout)
        return AttentionDecode(*sizes, *options, page=page, pool=q["B"] if page is None else k["B"])  # pool: pages of K

    def _format(self, operands) -> Format:
        return operand_format("Q", operands["Q"], self.format, FORMATS)


@call_of(CachedAttention)
def attend_cached(
    Q: Shaped[np.ndarray, "B H S D"],
    K: Shaped[np.ndarray, "B G T D"],
    V: Shaped[np.ndarray, "B G T D"],
    lengths: Int32[np.ndarray, " B"] | None = None,
    table: Int32[np.ndarray, "B P"] | None = None,
    *,
    O: Shaped[np.ndarray, "B H S D"] | None = None,
    lse: Float32[np.ndarray, "B H S"] | None = None,
    causal: bool = True,
    scale: float | None = None,
    layout: Layout = "BHSD",
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "B H S D"]:
    """Compute O = softmax(scale Q K^T) V of the last queries of each sequence, with keys and values in a cache.

    Parameters
    ----------
    Q, K, V
        Device arrays, or host arrays, which are copied to the device, of float16 or bfloat16. Rows have a multiple of 8
        elements, 128 at most. Q may have a multiple of the heads of K and V; neighbours share one.
    lengths
        Number of keys of each sequence, int32; None for all that there is room for. Lengths on the device are read only
        by kernels, and may change between runs of a graph: no error is raised if one is out of range.
    table
        Page table, int32: position p of sequence b is position p % T of page `table[b, p // T]`. K and V have pages of
        T positions, a multiple of 16, along their first axis. None: they have sequences there.
    O
        Output; None for a new array of Q's kind.
    causal
        Whether keys past a query's position are masked; the last query is at the last key. O is 0 for a query that sees
        no key.
    scale
        Factor of the scores; None for 1 / sqrt(head_dim).
    lse
        Output for log-sum-exp of each query's scores, or None; minus infinity for a query that sees no key.
    layout
        Order of the axes: "BHSD" or "BSHD", for batch or page, heads, positions and head_dim.
    format
        Format of an array of bits: "bfloat16" (uint16). Otherwise its type says it.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

    Returns
    -------
    O. The same call returns the same bits each time.

    Raises
    ------
    TypeError
        An operand is no array, or has a wrong element type.
    ValueError
        Shapes do not fit, strides are not supported, or O shares memory with another array.

    Notes
    -----
    The kernels are those of `attention.ladder("decode")`: the number of heads and sequences, and whether lengths are
    given, decide which is fastest; the simulator runs "split". The first call makes a plan, which is cached by the
    layout of the operands.
    (Dao and others, Flash-Decoding, 2023; Osama and others, Stream-K, 2023; Kwon and others, PagedAttention, 2023.)

    Examples
    --------
    >>> O = attention.attend_cached(Q, K, V, lengths)
    """
    return run_operation(CachedAttention, (Q, K, V, lengths, table, O, lse), (causal, scale, layout, format), stream)


def plan_cached(Q, K, V, lengths=None, table=None, *, O, lse=None, stream=None, **options) -> Plan:
    """Prepare a call of `attend_cached`, to run many times. See Also: `plan`.

    Examples
    --------
    >>> plan = attention.plan_cached(Q, K, V, lengths, table, O=O)
    >>> plan()
    """
    arrays = dict(zip(ARRAYS, (Q, K, V, lengths, table, O, lse), strict=True))
    return make_plan(CachedAttention(**options), arrays, stream=stream)


def _check_values(problem, lengths, table):
    """Raise ValueError if arrays of the host name missing keys or pages; those of the device are not read."""
    lengths, table = (
        X if X is None or not owner_of(X).is_on_host(X) else owner_of(X).as_numpy(X) for X in (lengths, table)
    )
    keys = problem.keys
    if isinstance(lengths, np.ndarray) and (wrong := lengths[(lengths < 0) | (lengths > keys)]).size:
        raise ValueError(f"lengths holds {wrong[0]}, and there is room for {keys} keys: give 0 to {keys}")
    if isinstance(table, np.ndarray) and (lengths is None or isinstance(lengths, np.ndarray)):
        used = np.full(len(table), keys) if lengths is None else lengths
        pages = table[np.arange(problem.pages) * problem.page < used[:, None]]
        if (wrong := pages[(pages < 0) | (pages >= problem.pool)]).size:
            raise ValueError(
                f"table holds {wrong[0]} where a sequence has keys, and there are {problem.pool} pages: "
                f"give 0 to {problem.pool - 1}"
            )
