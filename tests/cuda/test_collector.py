"""The garbage collector is as it was after a compilation, whatever happens in it."""

import gc

import pytest

from labkit.cuda.collector import collector_paused


def test_it_is_paused_and_goes_on():
    with collector_paused(), collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="of the compiler"), collector_paused():
        raise ValueError("of the compiler")
    assert gc.isenabled()


def test_a_user_who_switched_it_off_keeps_it_off():
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
