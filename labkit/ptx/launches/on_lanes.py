"""What concerns the launch before or after. Here one launch follows upon the end of the other, so nobody waits."""

from numba import types

from labkit.simulator.checks import early
from labkit.simulator.family import Family
from labkit.simulator.operands import check_count
from labkit.simulator.values import Value

LAUNCHES = Family(keeps_clocks=True)


class Wait:
    """A function without arguments behind which the launch before has ended."""

    def translate(self, translator, node):
        check_count(translator, node, 0)
        translator.emit(f"{translator.constant(early.note_wait)}(w, {translator.mask})")
        return Value("None", types.none)


class Release:
    """A function without arguments and without effect here."""

    def translate(self, translator, node):
        check_count(translator, node, 0)
        return Value("None", types.none)
