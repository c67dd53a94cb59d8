"""Which device runs, and how that is said."""

import importlib.util
import re

import pytest

from labkit.machine import device
from labkit.machine.device import Device, DeviceError

SENTENCE = re.compile(r"Kernels run (on the GPU|in the simulator of the GPU) [\w .-]+ \(.+\)\.")
GPU = Device("gpu", "NVIDIA H100 80GB HBM3", "compute capability 9.0")
SIMULATOR = Device("simulator", "H100 SXM", "no NVIDIA GPU was found")


@pytest.fixture
def machine(monkeypatch):
    """Set what LABKIT_DEVICE says and what the machine has."""

    def set(wanted, found):
        monkeypatch.setenv("LABKIT_DEVICE", wanted)
        monkeypatch.setattr(device, "detect", lambda: found)

    return set


@pytest.mark.parametrize("found", [GPU, SIMULATOR])
def test_the_best_device_runs_unless_told_otherwise(machine, found):
    machine("", found)
    assert device.current() == found


def test_the_simulator_can_be_asked_for_beside_a_gpu(machine):
    machine("simulator", GPU)
    assert device.current().kind == "simulator"


def test_a_gpu_that_is_there_can_be_asked_for(machine):
    machine("GPU", GPU)
    assert device.current() == GPU


def test_asking_for_a_gpu_that_is_not_there_says_what_to_do(machine):
    machine("gpu", SIMULATOR)
    with pytest.raises(DeviceError, match="no NVIDIA GPU was found; run `python -m labkit doctor`.*=simulator"):
        device.current()


def test_another_word_is_refused(machine):
    machine("cuda", GPU)
    with pytest.raises(DeviceError, match="'cuda'; set it to 'gpu' or 'simulator'"):
        device.current()


@pytest.mark.parametrize("which", [GPU, SIMULATOR])
def test_the_sentence_has_one_shape(which):
    assert SENTENCE.fullmatch(str(which))
    assert repr(which) == str(which)


def test_this_machine_is_described():
    assert SENTENCE.fullmatch(str(device.detect()))


def test_no_numba_cuda_means_the_simulator(monkeypatch):
    monkeypatch.setattr(
        device, "find_spec", lambda name: None if name == "numba_cuda" else importlib.util.find_spec(name)
    )
    found = device.detect.__wrapped__()
    assert (found.kind, found.detail) == ("simulator", "numba-cuda is not installed")
