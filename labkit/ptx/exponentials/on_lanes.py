"""Powers of two on lanes, correctly rounded; a GPU's may be off by two units in the last place."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.simulator.operands import check_argument_count
from labkit.simulator.seam import types

MIN_NORMAL = np.finfo(np.float32).tiny


def exp2(x):
    """Return 2**x of float32, with subnormal results flushed to zero."""
    with np.errstate(over="ignore", under="ignore"):
        power = np.exp2(np.asarray(x, np.float64)).astype(np.float32)
    return np.where(power < MIN_NORMAL, np.float32(0), power)[()]


@dataclass(frozen=True)
class FloatFunction:
    """Call of a function of a float32 that returns a float32."""

    function: Callable

    def translate(self, translator, node):
        check_argument_count(translator, node, 1)
        value = translator.scalar(node.args[0], f"`{translator.written(node.func)}`")
        translator.emit(f"w.launch.events.powers += w.count({translator.mask})")
        run = translator.constant(self.function)
        return translator.temp(f"{run}({translator.converted(value, types.float32)})", types.float32)
