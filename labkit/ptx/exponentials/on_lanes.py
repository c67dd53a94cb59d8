"""Powers of two on lanes: rounded rightly, where a GPU's may be two units in the last place off."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.simulator.operands import check_count

LEAST = np.finfo(np.float32).tiny


def exp2(x):
    """2**x of float32, with zero for what is less than the least normal number."""
    with np.errstate(over="ignore", under="ignore"):
        power = np.exp2(np.asarray(x, np.float64)).astype(np.float32)
    return np.where(power < LEAST, np.float32(0), power)[()]


@dataclass(frozen=True)
class OfFloat32:
    """A function of a float32 that gives another."""

    function: Callable

    def translate(self, translator, node):
        check_count(translator, node, 1)
        value = translator.scalar(node.args[0], f"`{translator.written(node.func)}`")
        translator.emit(f"w.launch.events.powers += w.count({translator.mask})")
        run = translator.constant(self.function)
        return translator.temp(f"{run}({translator.converted(value, types.float32)})", types.float32)
