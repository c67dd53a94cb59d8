"""What concerns the launch before or after: nothing here, where one launch follows upon the end of the other."""

from numba import types

from labkit.simulator.instructions.operands import check_count
from labkit.simulator.translator.values import Value


class Nothing:
    """An instruction without operands and without effect."""

    def translate(self, translator, node):
        check_count(translator, node, 0)
        return Value("None", types.none)
