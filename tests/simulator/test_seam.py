"""numba as the simulator uses it."""

import gc

import pytest

from labkit.simulator.seam import event, njit


class _Collection(event.Listener):
    """Notes whether Python searches for cycles when a compilation begins."""

    def __init__(self):
        self.is_on = []

    def on_start(self, event):
        self.is_on.append(gc.isenabled())

    def on_end(self, event):
        pass


@pytest.mark.parametrize("was_on", [True, False])
def test_no_search_for_cycles_while_numba_compiles(was_on):
    def fails(x):
        return x.no_such_name

    collection = _Collection()
    (gc.enable if was_on else gc.disable)()
    try:
        with event.install_listener("numba:compile", collection):
            assert njit(lambda x: x + 1)(1) == 2
            with pytest.raises(Exception, match="no_such_name"):
                njit(fails)(1)
        assert gc.isenabled() == was_on
    finally:
        gc.enable()
    assert collection.is_on == [False, False]
