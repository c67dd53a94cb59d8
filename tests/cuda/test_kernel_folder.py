"""The folder of compiled kernels stays below its size, and what was used last stays longest."""

import os

import pytest

from labkit.cuda import kernel_folder


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_folder, "folder", lambda: tmp_path)
    monkeypatch.setattr(kernel_folder, "MOST_BYTES", 1000)
    for age, name in enumerate(("new", "middle", "old")):
        path = tmp_path / f"{name}.kernel"
        path.write_bytes(bytes(300))
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return tmp_path


def names(folder):
    return {path.stem for path in folder.glob("*.kernel")}


def test_a_kernel_for_which_there_is_room_removes_none(kernels):
    kernel_folder.make_room(100)
    assert names(kernels) == {"new", "middle", "old"}


def test_the_kernels_that_were_not_used_for_longest_make_room(kernels):
    kernel_folder.make_room(500)
    assert names(kernels) == {"new"}


def test_all_can_be_removed_with_what_was_left_half_written(kernels):
    (kernels / "half.part").write_bytes(b"")
    assert kernel_folder.clear() == 3
    assert not [*kernels.iterdir()]


def test_a_folder_that_is_not_there_is_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_folder, "folder", lambda: tmp_path / "none")
    assert kernel_folder.kernels() == [] and kernel_folder.clear() == 0
    kernel_folder.make_room(10)
