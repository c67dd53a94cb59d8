"""`.venv` is made once, and again when its pins change."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from labkit.setup import environment


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    """An empty checkout whose pip only notes what it is asked for."""
    calls = []
    for name in environment.PINS:
        (tmp_path / name).write_text("")
    monkeypatch.setattr(environment, "CHECKOUT", tmp_path)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment, "PYTHON", tmp_path / ".venv/bin/python")
    monkeypatch.setattr(environment, "STAMP", tmp_path / ".venv/stamp")

    def create(folder, **_):
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/python").touch()

    def call(command, **_):
        calls.append(command[-1])
        return 0

    monkeypatch.setattr(environment.venv, "create", create)
    monkeypatch.setattr(environment.subprocess, "call", call)
    return SimpleNamespace(path=tmp_path, calls=calls)


def test_it_installs_once(checkout):
    assert environment.ensure(("dev",)) == environment.PYTHON
    environment.ensure(("dev",))
    assert checkout.calls == [".[dev]"]


def test_it_installs_again_when_the_pins_change(checkout):
    environment.ensure()
    (checkout.path / "constraints.txt").write_text("numpy==2.4.6\n")
    environment.ensure()
    assert checkout.calls == [".", "."]


def test_extras_are_added_and_kept(checkout):
    environment.ensure(("dev", "toolchain"))
    environment.ensure()
    environment.ensure(("torch",))
    assert checkout.calls == [".[dev,toolchain]", ".[dev,toolchain,torch]"]


def test_an_extra_within_another_is_there_already(checkout):
    """`make lab` needs `grade`, which is a part of the `dev` of `make test`."""
    shutil.copy(environment.Path(__file__).parents[2] / "pyproject.toml", checkout.path)
    environment.ensure(("dev", "toolchain"))
    environment.ensure(("grade", "cu13"))
    assert checkout.calls == [".[dev,toolchain]"]


def test_a_failed_installation_is_tried_again(checkout, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(environment.subprocess, "call", lambda *_, **__: 1)
        with pytest.raises(SystemExit, match="run the same command again"):
            environment.ensure()
    environment.ensure()
    assert checkout.calls == ["."]


def test_an_old_python_is_told_which_one_to_use(checkout, monkeypatch):
    monkeypatch.setattr(environment.sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit, match=r"needs Python 3.11, 3.12 or 3.13, and this is 3.9; try: make PYTHON="):
        environment.ensure()
    assert not checkout.calls


@pytest.mark.parametrize(
    ("banner", "extras"),
    [("CUDA Version: 13.0", ("cu13",)), ("CUDA Version: 12.8", ("cu12",)), ("No devices were found", ())],
)
def test_the_driver_chooses_the_cuda_wheels(monkeypatch, banner, extras):
    monkeypatch.setattr(environment.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=f"| {banner} |"))
    assert environment.gpu_extras() == extras


def test_no_driver_means_no_cuda_wheels(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert environment.gpu_extras() == ()


def test_the_module_runs_without_any_package():
    code = "import labkit.setup.environment, labkit.__main__"
    subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(environment.CHECKOUT)!r}); {code}",
        ],
        check=True,
    )


def test_an_older_python_is_told_how_to_name_another():
    code = "import runpy, sys; sys.version_info = (3, 10, 13); runpy.run_module('labkit', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = "labkit needs Python 3.11, 3.12 or 3.13, and this is 3.10; try: make PYTHON=python3.13 lab"
    assert (done.returncode, done.stderr.strip()) == (1, said)
