"""`import labkit` is quick and light."""

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from numba import cuda as numba_cuda

import labkit

HEAVY = {"torch", "matplotlib", "ipywidgets", "anywidget", "IPython"}


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_import_takes_under_a_second():
    code = "import time; t = time.perf_counter(); import labkit; print(time.perf_counter() - t)"
    assert min(run(code) for _ in range(3)) < 1


def test_the_simulator_loads_nothing_heavy():
    loaded = run("import sys, json, labkit; labkit.simulate; print(json.dumps([*sys.modules]))")
    assert "labkit.simulator.run" in loaded
    assert not HEAVY & set(loaded)


@pytest.mark.parametrize("modules", ["labkit.book, labkit.views", "labkit.grading.fast_start, nbval.plugin"])
def test_the_start_of_a_notebook_does_not_wait_for_formats_of_jsonschema(modules):
    loaded = run(f"import sys, json, {modules}; print(json.dumps([*filter(sys.modules.get, sys.modules)]))")
    assert "rfc3987_syntax" not in loaded  # its grammar takes a second


def test_a_command_does_not_wait_for_them_either_but_a_program_of_the_user_s_has_them(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import rfc3987_syntax, sys\nprint('had' if sys.modules['rfc3987_syntax'] else '')\n")
    invoke = "import json; from typer.testing import CliRunner; from labkit.cli import app; result = CliRunner().invoke"
    loaded = "import sys; print(json.dumps([*filter(sys.modules.get, sys.modules)]))"
    assert "rfc3987_syntax" not in run(f"{invoke}(app, ['prove', {str(tmp_path / 'none')!r}]); {loaded}")
    assert "had" in run(f"{invoke}(app, ['run', {str(program)!r}]); print(json.dumps(result.output))")


def test_what_labkit_offers_is_loaded_when_it_is_asked_for():
    loaded = run("import sys, json, labkit; dir(labkit); print(json.dumps([*sys.modules]))")
    assert [name for name in loaded if name.startswith("labkit")] == ["labkit"]
    assert run("import json, labkit; print(json.dumps(labkit.gpu('H100 SXM').sms))") == 132


def test_what_labkit_offers_is_there_and_no_module_hides_it():
    for path in sorted(Path(labkit.__file__).parent.glob("*.py")):
        if path.stem not in ("__init__", "__main__"):
            importlib.import_module(f"labkit.{path.stem}")
    for name in labkit.__all__:
        assert name in dir(labkit)
        offered = getattr(labkit, name)
        assert callable(offered) or offered is sys.modules[labkit._PLACES[name]]
    for path in sorted(Path(labkit.cuda.__file__).parent.glob("[!_]*.py")):
        assert not hasattr(numba_cuda, path.stem), f"cuda/{path.name} would hide numba.cuda.{path.stem}"


def test_editors_see_what_labkit_offers():
    stub = ast.parse(Path(labkit.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    seen = {}
    for line in stub.body:
        if isinstance(line, ast.ImportFrom):
            seen |= {alias.asname or alias.name: f"{line.module}.{alias.name}" for alias in line.names}
    assert seen == {name: place.replace(":", ".") for name, place in labkit._PLACES.items()}
    names = next(line.value for line in stub.body if isinstance(line, ast.Assign))
    assert sorted(ast.literal_eval(names)) == sorted(labkit.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = labkit.nothing


def test_what_chooses_convolutions_is_loaded_when_it_is_asked_for():
    code = "import sys, json; from labkit import conv; before = 'labkit.conv.interface' in sys.modules; conv.forward; "
    assert run(code + "print(json.dumps([before, 'labkit.conv.interface' in sys.modules]))") == [False, True]


@pytest.mark.parametrize("name", ["attention", "simulate"])
def test_a_package_that_is_missing_is_named(name):
    code = f"import json, sys, labkit; sys.modules['numpy'] = None\ntry: labkit.{name}\nexcept ImportError as error: "
    assert "numpy" in run(code + "print(json.dumps(str(error)))")
