"""`import labkit` is quick and light."""

import json
import subprocess
import sys

import pytest

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


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = labkit.nothing
