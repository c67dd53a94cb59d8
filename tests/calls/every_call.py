"""Every call that users make, on tiny arrays: what holds for all of them is tested on this table."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

import numpy as np

from labkit import attention, conv, elementwise, gemm, layouts, norm, places, softmax
from labkit.calls.operation import Operation

ALL = "float32", "bfloat16", "float16"
FLOAT32 = frozenset({"weight", "bias", "mean", "rstd", "variance", "running_mean", "running_variance", "lse"})
INT32 = frozenset({"lengths"})


@dataclass(frozen=True, eq=False)
class Call:
    """A call by the shapes of its arrays: what it reads, what it gives back, and what else it writes on request."""

    function: Callable
    inputs: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]
    options: dict = field(default_factory=dict)
    written: dict[str, tuple[int, ...]] = field(default_factory=dict)
    types: tuple[str, ...] = ("float32", "bfloat16")  # what it computes, the first of them NumPy's

    def __str__(self):
        return f"{self.function.__module__.split('.')[1]}.{self.function.__name__}"

    @property
    def operation(self) -> type[Operation]:
        return self.function.operation

    def arrays(self, dtype=None, seed=0) -> dict[str, np.ndarray]:
        """Inputs of random numbers, those that are not of a type of their own as this one."""
        rng = np.random.default_rng(seed)
        return {name: self._array(rng, name, shape, dtype or self.types[0]) for name, shape in self.inputs.items()}

    def _array(self, rng, name, shape, dtype):
        if name in INT32:
            return np.ones(shape, np.int32)
        values = rng.standard_normal(shape).astype(np.float32)
        if name in ("rstd", "variance", "running_variance"):
            values = 1 + np.abs(values)
        return values if self.is_float32(name) else values.astype(dtype)

    def is_float32(self, name: str) -> bool:
        """Whether an array holds float32 whatever the others hold."""
        beside = name.removeprefix("d") in FLOAT32 or name.endswith("_scale")
        return beside and self.function is not gemm.multiply

    def run(self, arrays: dict, **options):
        """The results, as a tuple."""
        found = self.function(**arrays, **self.options, **options)
        return found if isinstance(found, tuple) else (found,)


X, W, Y = (1, 2, 5, 4), (3, 2, 3, 2), (1, 3, 3, 3)  # images, filters and outputs of a convolution
ROWS, COLUMNS = (2, 3, 20), (20,)
HEADS = (1, 2, 4, 16)
SCALES = "q_scale", "k_scale", "v_scale"

CALLS = (
    Call(gemm.multiply, {"A": (3, 4), "B": (4, 5), "bias": (5,)}, {"C": (3, 5)}, types=ALL),
    Call(conv.forward, {"x": X, "w": W}, {"y": Y}, types=("float32",)),
    Call(
        conv.forward,
        {"x": (1, 5, 4, 8), "w": (8, 3, 2, 8)},
        {"y": (1, 3, 3, 8)},
        {"layout": "NHWC"},
        types=("float16", "bfloat16"),
    ),
    Call(conv.backward_data, {"w": W, "y": Y}, {"x": X}, {"H": 5, "W": 4}, types=("float32",)),
    Call(conv.backward_filter, {"x": X, "y": Y}, {"w": W}, {"R": 3, "S": 2}, types=("float32",)),
    Call(
        norm.layer_norm,
        {"x": ROWS, "weight": COLUMNS, "bias": COLUMNS},
        {"y": ROWS},
        written={"mean": ROWS[:-1], "rstd": ROWS[:-1]},
    ),
    Call(norm.rms_norm, {"x": ROWS, "weight": COLUMNS}, {"y": ROWS}, written={"rstd": ROWS[:-1]}),
    Call(
        norm.layer_norm_backward,
        {"dy": ROWS, "x": ROWS, "weight": COLUMNS, "mean": ROWS[:-1], "rstd": ROWS[:-1]},
        {"dx": ROWS, "dweight": COLUMNS, "dbias": COLUMNS},
    ),
    Call(
        norm.rms_norm_backward,
        {"dy": ROWS, "x": ROWS, "weight": COLUMNS, "rstd": ROWS[:-1]},
        {"dx": ROWS, "dweight": COLUMNS},
    ),
    Call(
        norm.batch_norm,
        {"x": X, "weight": (2,), "bias": (2,)},
        {"y": X},
        written=dict.fromkeys(("mean", "variance", "running_mean", "running_variance"), (2,)),
    ),
    Call(
        norm.batch_norm_backward,
        {"dy": X, "x": X, "weight": (2,), "bias": (2,), "mean": (2,), "variance": (2,)},
        {"dx": X, "dweight": (2,), "dbias": (2,)},
    ),
    Call(softmax.softmax, {"x": ROWS}, {"out": ROWS}),
    Call(softmax.softmax_backward, {"dy": ROWS, "y": ROWS}, {"dx": ROWS}),
    Call(attention.attend, dict.fromkeys("QKV", HEADS), {"O": HEADS}, written={"lse": HEADS[:-1]}, types=ALL),
    Call(
        attention.attend_backward,
        {**dict.fromkeys(("dO", "Q", "K", "V", "O"), HEADS), "lse": HEADS[:-1]},
        dict.fromkeys(("dQ", "dK", "dV"), HEADS),
        types=ALL,
    ),
    Call(
        attention.attend_cached,
        {**dict.fromkeys("QKV", HEADS), "lengths": (1,)},
        {"O": HEADS},
        written={"lse": HEADS[:-1]},
        types=("float16", "bfloat16"),
    ),
    Call(
        attention.quantise,
        dict.fromkeys("QKV", HEADS),
        {**dict.fromkeys(("q_codes", "k_codes"), HEADS), "v_codes": (1, 2, 16, 16), **dict.fromkeys(SCALES, (1, 2, 1))},
        types=ALL,
    ),
    Call(elementwise.geglu, {"gate": ROWS, "up": ROWS}, {"y": ROWS}, types=ALL),
    Call(layouts.convert, {"x": X}, {"y": (1, 5, 4, 2)}, {"source": "NCHW", "target": "NHWC"}, types=ALL),
)


def every_operation() -> set[type[Operation]]:
    """The operations of all functions that users call."""
    rooms = [import_module(f"labkit.{room}") for room in places.operations()]
    members = (getattr(room, name) for room in rooms for name in dir(room))
    return {member.operation for member in members if hasattr(member, "operation")}
