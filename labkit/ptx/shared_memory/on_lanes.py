"""Arrays in the block's dynamic shared memory, on lanes."""

from dataclasses import dataclass

import numpy as np

from labkit.simulator import numba_types
from labkit.simulator.operands import check_argument_count


@dataclass(frozen=True)
class SharedArray:
    """Call `(first_byte, shape, dtype)` that returns an array; the memory is aligned to `alignment` bytes."""

    alignment: int

    def translate(self, translator, node):
        check_argument_count(translator, node, 3)
        first_byte = translator.size(node.args[0])
        shape = translator.shape(node.args[1])
        kind = translator.element_type(node.args[2])
        dtype = numba_types.stored_dtype(kind)
        if not isinstance(first_byte, (int, np.integer)) or first_byte < 0 or first_byte % dtype.itemsize:
            translator.fail(
                node.args[0],
                f"an array of {kind} begins at a multiple of {dtype.itemsize} bytes, not at `{first_byte}`",
            )
        if any(n <= 0 for n in shape):
            translator.fail(node.args[1], f"the shape {shape} must be positive in every dimension")
        return translator.allocated(
            node, kind, len(shape), "shared", shape, dtype, self.alignment, first_byte=int(first_byte)
        )
