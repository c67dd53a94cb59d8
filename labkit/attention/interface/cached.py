"""Attention of a few queries a sequence to a cache, as it lies, in pages or not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32, Int32, Shaped

from labkit.arrays.element_types import dtype_of, type_name
from labkit.arrays.numbers import index_array
from labkit.arrays.operands import can_hold, operand_format, order_of_axes, shape_text
from labkit.arrays.owners import owner_of
from labkit.arrays.views import as_strided
from labkit.arrays.workspace import Workspace
from labkit.attention.decode.problem import AttentionDecode
from labkit.attention.interface.choice import chosen_for_cache
from labkit.attention.problem import Layout, check_options
from labkit.calls.call import call
from labkit.calls.operation import Operation, Result, calls
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
        check_options(self.causal, None, self.scale, self.layout)

    def declared(self, given: Mapping[str, object]) -> "CachedAttention":
        return replace(self, format=self._format(given))

    def check(self, given: Mapping[str, object]) -> None:
        for name, axes in {"Q": 4, "K": 4, "V": 4, "table": 2}.items():
            if name in given and len(given[name].shape) != axes:
                wanted = "batch and pages" if name == "table" else self.layout
                raise ValueError(f"{name} is {shape_text(given[name].shape)}: give it {axes} axes, {wanted}")
        format, asked = self._format(given), self._problem(given)
        for name, X in given.items():
            if tuple(X.shape) != asked.shapes[name]:
                wanted = shape_text(asked.shapes[name])
                raise ValueError(f"{name} is {shape_text(X.shape)}, but {wanted} beside the other arrays: change it")
            known = {"lse": np.dtype(np.float32)} | dict.fromkeys(asked.int32_arrays, np.dtype(np.int32))
            if name in known:
                if dtype_of(X) != known[name]:
                    raise TypeError(f"{name} holds {type_name(X)}, but it is to hold {known[name]}: convert it")
            elif not can_hold(X, format):
                raise TypeError(f"Q holds {type_name(given['Q'])} and {name} {type_name(X)}: make them alike")
        _check_places(asked, given.get("lengths"), given.get("table"))

    def result(self, name: str, given: Mapping[str, object]) -> Result:
        Q = given["Q"]
        return Result("Q", tuple(Q.shape), axes=order_of_axes(Q))

    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        asked = self._problem(given)
        instead = {
            "lengths": lambda: as_strided(index_array(asked.keys + 1), (asked.batch,), (0,), begin_byte=4 * asked.keys),
            "table": lambda: as_strided(index_array(asked.batch), (asked.batch, 1), (4, 4)),
            "lse": lambda: workspace.array("instead of lse", asked.shapes["lse"], np.float32),
        }
        arrays = tuple(given[name] if name in given else instead[name]() for name in ARRAYS)
        alike = asked.batch == 1 or "lengths" not in given
        return chosen_for_cache(arrays, asked, self._format(given), workspace, alike).launches

    def _problem(self, given) -> AttentionDecode:
        """Raises where the arrays make no attention."""
        of_q, of_k = (dict(zip(self.layout, given[name].shape)) for name in "QK")
        page = of_k["S"] if "table" in given else None
        keys = of_k["S"] * (1 if page is None else given["table"].shape[1])
        sizes = of_q["B"], of_q["H"], of_q["S"], of_q["D"], keys, of_k["H"], self.causal, None, self.scale, self.layout
        return AttentionDecode(*sizes, page=page, pool=of_q["B"] if page is None else of_k["B"])

    def _format(self, given) -> Format:
        return operand_format("Q", given["Q"], self.format, FORMATS)


@calls(CachedAttention)
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
    """O = softmax(scale Q K^T) V of the last queries of each sequence, whose keys and values are in a cache.

    Parameters
    ----------
    Q, K, V
        Arrays of the device, or of the host, which are copied there; they hold float16 or bfloat16. Rows have a
        multiple of 8 elements, 128 at most. Q may have a multiple of the heads of K and V, which neighbours share.
    lengths
        How many keys each sequence has, int32; as many as there is room for, if it is None. Only kernels look at those
        of the device, which may change between the runs of a graph: nothing says so where one is out of range.
    table
        Of a cache in pages, int32: position p of sequence b is position p % T of page `table[b, p // T]`, where K and V
        have pages of T positions, a multiple of 16, along their first axis. If it is None, they have a sequence there.
    O
        Where the result goes. If it is None, a new array of the kind that Q is.
    causal
        Whether a query sees no key behind its position; the last query stands at the last key. A query that sees no
        key gives 0.
    scale
        Of the scores; 1 / sqrt(head_dim), if it is None.
    lse
        Where log-sum-exp of the scores of each query goes, if it is wanted; minus infinity where there are none.
    layout
        The order of the axes: "BHSD" or "BSHD", for batch or page, heads, positions and head_dim.
    format
        What an array of bits holds: "bfloat16" (uint16). Otherwise its type says it.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

    Returns
    -------
    O. The same call gives the same bits each time.

    Raises
    ------
    TypeError
        An operand is no array, or holds what it should not.
    ValueError
        Shapes do not fit, rows lie where kernels do not find them, or O shares memory with another array.

    Notes
    -----
    The kernels are those of `attention.ladder("decode")`: which of them reads the cache fastest is told by how many
    heads and sequences there are, and whether lengths are given; the simulator runs "split". The first call makes a
    plan, which later ones find again by how their operands lie.
    (Dao and others, Flash-Decoding, 2023; Osama and others, Stream-K, 2023; Kwon and others, PagedAttention, 2023.)

    Examples
    --------
    >>> O = attention.attend_cached(Q, K, V, lengths)
    """
    return call(CachedAttention, (Q, K, V, lengths, table, O, lse), (causal, scale, layout, format), stream)


def plan_cached(Q, K, V, lengths=None, table=None, *, O, lse=None, stream=None, **options) -> Plan:
    """A call of `attend_cached` worked out once, to be run many times; the rest is as in `plan`.

    Examples
    --------
    >>> plan = attention.plan_cached(Q, K, V, lengths, table, O=O)
    >>> plan()
    """
    arrays = dict(zip(ARRAYS, (Q, K, V, lengths, table, O, lse), strict=True))
    return make_plan(CachedAttention(**options), arrays, stream=stream)


def _check_places(asked, lengths, table):
    """Raises where arrays of the host speak of keys that there are not; those of the device are not looked at."""
    lengths, table = (
        X if X is None or not owner_of(X).is_on_host(X) else owner_of(X).as_numpy(X) for X in (lengths, table)
    )
    if isinstance(lengths, np.ndarray) and (wrong := lengths[(lengths < 0) | (lengths > asked.keys)]).size:
        raise ValueError(f"lengths holds {wrong[0]}, and there is room for {asked.keys} keys: give 0 to {asked.keys}")
    if isinstance(table, np.ndarray) and (lengths is None or isinstance(lengths, np.ndarray)):
        used = np.full(len(table), asked.keys) if lengths is None else lengths
        pages = table[np.arange(asked.pages) * asked.page < used[:, None]]
        if (wrong := pages[(pages < 0) | (pages >= asked.pool)]).size:
            raise ValueError(
                f"table holds {wrong[0]} where a sequence has keys, and there are {asked.pool} pages: "
                f"give 0 to {asked.pool - 1}"
            )
