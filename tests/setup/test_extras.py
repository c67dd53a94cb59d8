"""What is said where a package of an extra is missing, and where nothing can be written."""

import subprocess
import sys

import pytest

from labkit.setup import environment, extras


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("name", "extra"), [("nbval.plugin", "grade"), ("IPython", "book"), ("torch", "torch"), ("distributed", "cluster")]
)
def test_a_package_of_an_extra_is_named_with_its_extra(name, extra):
    package = name.partition(".")[0]
    found = extras.describe_missing_package(ModuleNotFoundError(name=name))
    assert found == f"{package} is not installed: {extras.how_to_install(extra)}"


def test_an_extra_goes_where_labkit_runs(monkeypatch, tmp_path):
    """A bare `pip` is seldom that of the checkout's environment."""
    monkeypatch.setattr(environment, "CHECKOUT", tmp_path)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    assert extras.how_to_install("torch") == "pip install 'labkit-gpu[torch]'"
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert extras.how_to_install("torch") == f"run `python -m labkit.setup.environment torch` in {tmp_path}"


def test_of_other_packages_nothing_is_said():
    assert extras.describe_missing_package(ModuleNotFoundError(name="nothing_of_the_kind")) == ""
    assert extras.describe_missing_package(ModuleNotFoundError()) == ""


def test_a_command_without_its_extra_ends_in_one_sentence():
    code = "import sys; sys.modules['nbformat'] = None; sys.argv = ['labkit', 'build']; from labkit.cli import main; "
    done = python(code + "main()")
    assert done.returncode == 1
    assert done.stderr == f"nbformat is not installed: {extras.how_to_install('book')}\n"


def test_lab_without_jupyterlab_and_its_server_names_jupyterlab():
    code = (
        "import sys; sys.modules['jupyterlab'] = sys.modules['jupyter_server'] = None; sys.argv = ['labkit', 'lab']; "
    )
    done = python(code + "from labkit.cli import main; main()")
    assert (done.returncode, done.stderr.partition(":")[0]) == (1, "jupyterlab is not installed")


def test_a_name_without_its_extra_is_an_import_error_of_one_sentence():
    done = python("import sys, labkit; sys.modules['matplotlib'] = None; labkit.views")
    last = done.stderr.splitlines()[-1]
    assert last == f"ImportError: labkit.views: matplotlib is not installed: {extras.how_to_install('book')}"


def test_compiled_functions_go_to_a_temporary_folder_where_nothing_else_can_be_written():
    code = "import os; os.access = lambda *_: False; os.environ.pop('NUMBA_CACHE_DIR', None); import labkit; "
    done = python(code + "import numba; print(os.path.isdir(numba.config.CACHE_DIR))")
    assert done.stdout == "True\n", done.stderr


def test_the_core_loads_no_package_of_an_extra():
    code = "import sys, labkit; labkit.simulate, labkit.gemm.multiply, labkit.plan, labkit.results; import labkit.cli; "
    done = python(code + "print(*sys.modules)")
    packages = set(extras._extras())
    loaded = {name.partition(".")[0].lower() for name in done.stdout.split()}
    assert packages and not (packages & loaded) - {"pygments"}, done.stderr
