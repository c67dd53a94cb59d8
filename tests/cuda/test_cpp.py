"""The CUDA C++ twins: each belongs to a step and compiles; faults get a message that helps."""

import numpy as np
import pytest

from labkit.cuda import cpp
from labkit.cuda.cpp import CppError
from labkit.ladder import every_ladder

TARGETS = [(7, 5), (8, 0), (9, 0)]
NEEDS = {"gemm/tensor/s01_mma": (8, 0), "gemm/tensor/s05_wgmma": (9, 0)}


def test_every_twin_has_the_name_of_a_step():
    steps = {step.path for ladder in every_ladder() for step in ladder}
    assert len(cpp.names()) >= 6 and steps.issuperset(cpp.names())


@pytest.mark.needs("toolkit")
@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", cpp.names())
def test_a_twin_compiles_and_holds_the_kernel_of_its_name(name, target):
    if target < NEEDS.get(name, target):
        with pytest.raises(CppError, match=r"s0\d_\w+.cu does not compile"):
            cpp.cubin(name, target)
        return
    code = cpp.cubin(name, target)
    assert code.startswith(b"\x7fELF")
    assert f".text.{cpp.kernel(name).entry}".encode() in code


@pytest.mark.needs("toolkit")
def test_a_mistake_in_the_source_is_shown_with_its_line(tmp_path, monkeypatch):
    (tmp_path / "s01_broken.cu").write_text("\n\n__global__ void broken() { undeclared = 1; }\n")
    monkeypatch.setattr(cpp, "folder", lambda name: tmp_path)
    with pytest.raises(CppError, match=r"s01_broken.cu\(3\).*undeclared"):
        cpp.cubin("s01_broken", (8, 0))


def test_an_unknown_twin_is_told_which_there_are():
    with pytest.raises(CppError, match="no C\\+\\+ kernel 'gemm/fp32/s09'; there is conv/direct/s01_naive, "):
        cpp.kernel("gemm/fp32/s09")


def test_a_launch_without_a_gpu_says_what_is_missing(monkeypatch):
    from labkit.machine import device

    monkeypatch.setattr(device, "detect", lambda: device.Device("simulator", "H100 SXM", "no GPU"))
    twin = cpp.CppKernel("gemm/fp32/s01_naive")
    with pytest.raises(CppError, match="needs a GPU"):
        twin[1, 32](np.zeros(3, np.float32))
