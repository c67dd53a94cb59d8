"""Launches as the driver reads them."""

import ctypes
from types import SimpleNamespace

import pytest

DRIVERS_MAP = bytes(range(128))


class PassingMap:
    """A map of the driver whose memory holds something else once nobody refers to it."""

    def __init__(self):
        self.memory = ctypes.create_string_buffer(DRIVERS_MAP, len(DRIVERS_MAP))

    def getPtr(self):
        return ctypes.addressof(self.memory)

    def __del__(self):
        ctypes.memset(self.memory, 0, len(DRIVERS_MAP))


@pytest.mark.needs("numba-cuda")
def test_a_tensor_map_is_copied_while_it_is_there(monkeypatch):
    from labkit.cuda import packed

    monkeypatch.setattr(packed, "encode_map", lambda tensor_map: PassingMap())
    launch = object.__new__(packed.PackedLaunch)
    launch.maps, launch._buffers = [], []
    place = launch._encode_map(SimpleNamespace(array=None))
    assert place % packed.MAP_ALIGNMENT == 0
    assert ctypes.string_at(place, packed.MAP_BYTES) == DRIVERS_MAP
