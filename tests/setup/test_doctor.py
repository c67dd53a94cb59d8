"""The doctor names each fault and its remedy."""

import io

import pytest
from rich.console import Console

from labkit.machine import device
from labkit.setup import doctor
from labkit.setup.doctor import Driver

DRIVER_13 = Driver(("NVIDIA H100",), "580.65.06", (13, 0))
DRIVER_12 = Driver(("Tesla T4",), "550.54.15", (12, 4))
DRIVER_11 = Driver(("Tesla K80",), "470.82.01", (11, 4))
GPU = device.Device("gpu", "NVIDIA H100", "compute capability 9.0")
NO_TOOLKIT = device.Device("simulator", "H100 SXM", "a GPU was found, but not the CUDA toolkit")
WHEELS = {
    "numpy": "2.4.6",
    "numba-cuda": "0.30.4",
    "nvidia-cuda-nvrtc": "13.0.88",
    "cuda-bindings": "13.0.3",
    "jupyterlab": "4.6.6",
    "ipywidgets": "8.1.9",
    "anywidget": "0.11.0",
}


@pytest.fixture
def machine(monkeypatch):
    """A machine with this driver, device and these packages."""
    monkeypatch.setattr(doctor, "_simulator", lambda: doctor.Checkup("simulator", "works", ""))

    def set(driver=None, found=NO_TOOLKIT, **packages):
        versions = WHEELS | {name.replace("_", "-"): version for name, version in packages.items()}
        monkeypatch.setattr(doctor, "find_driver", lambda: driver)
        monkeypatch.setattr(doctor, "_version", versions.get)
        monkeypatch.setattr(device, "detect", lambda: found)
        return {row.subject: row for row in doctor.checkups()}

    return set


def test_without_a_gpu_nothing_is_at_fault():
    console = Console(file=io.StringIO(), width=200)
    assert doctor.run(console)
    table = console.file.getvalue()
    for what in (
        "Python",
        "GPU",
        "driver",
        "toolkit",
        "torch",
        "simulator",
        "runs on",
        "kernels",
        "JupyterLab",
        "widgets",
    ):
        assert what in table


def test_a_laptop_is_told_that_the_simulator_runs_everything(machine):
    rows = machine(driver=None)
    assert (rows["GPU"].state, rows["driver"].state) == ("absent", "absent")
    assert "simulator" in rows["GPU"].remedy


def test_a_gpu_machine_that_works(machine):
    rows = machine(DRIVER_13, GPU)
    assert (rows["GPU"].state, rows["driver"].state, rows["toolkit"].state) == ("works", "works", "works")
    assert "NVIDIA H100" in rows["GPU"].found


@pytest.mark.parametrize(("driver", "extra"), [(DRIVER_13, "cu13"), (DRIVER_12, "cu12")])
def test_a_gpu_without_the_toolkit_is_told_the_extra_of_its_driver(machine, driver, extra):
    rows = machine(driver, NO_TOOLKIT, nvidia_cuda_nvrtc=None)
    assert (rows["GPU"].state, rows["toolkit"].state) == ("fault", "fault")
    assert f"labkit-gpu[{extra}]" in rows["GPU"].remedy
    assert f"labkit-gpu[{extra}]" in rows["toolkit"].remedy


def test_a_toolkit_newer_than_the_driver(machine):
    row = machine(DRIVER_12, NO_TOOLKIT)["toolkit"]
    assert row.state == "fault"
    assert "newer than the driver" in row.found
    assert "cu12" in row.remedy


def test_a_toolkit_of_two_lines(machine):
    assert machine(nvidia_cuda_nvcc="13.4.59")["toolkit"].state == "fault"


def test_no_numba_cuda_is_a_fault_only_beside_a_gpu(machine):
    assert machine(None, numba_cuda=None)["toolkit"].state == "absent"
    assert machine(DRIVER_13, numba_cuda=None)["toolkit"].state == "fault"


def test_an_old_driver_is_told_to_update(machine):
    row = machine(DRIVER_11)["driver"]
    assert row.state == "fault"
    assert "update" in row.remedy


def test_a_numpy_too_new(machine):
    row = machine(numpy="2.6.0")["Python"]
    assert (row.state, row.remedy) == ("fault", 'pip install "numpy<2.6"')


def test_wsl_is_told_where_the_driver_belongs(machine, monkeypatch):
    monkeypatch.setattr(doctor.platform, "release", lambda: "5.15.153.1-microsoft-standard-WSL2")
    assert "in Windows (not in WSL)" in machine()["driver"].remedy


def test_torch_is_optional(machine):
    assert machine()["torch"].state == "absent"
    assert machine(torch="2.13.0")["torch"].state == "works"


def test_a_missing_widget_extension(machine, monkeypatch, tmp_path):
    monkeypatch.setattr("jupyter_core.paths.jupyter_path", lambda _: [str(tmp_path)])
    row = machine()["widgets"]
    assert row.state == "fault"
    assert "anywidget" in row.remedy


def test_a_checkup_that_breaks_is_a_fault_with_a_remedy(machine, monkeypatch):
    def broken():
        raise ImportError("DLL load failed")

    monkeypatch.setattr(doctor, "_simulator", broken)
    row = machine()["simulator"]
    assert row.state == "fault"
    assert "DLL load failed" in row.found
    assert row.remedy


def test_a_gpu_asked_for_but_absent(machine, monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "gpu")
    row = machine()["runs on"]
    assert row.state == "fault"
    assert "LABKIT_DEVICE=simulator" in row.remedy


def test_a_fault_makes_the_answer_false(machine):
    machine(DRIVER_11)
    assert not doctor.run(Console(file=io.StringIO()))
