"""A picture says when a cell has changed the kernel that it shows."""

import types
from dataclasses import replace

import numpy as np
import pytest
from IPython.core.events import EventManager, available_events

import labkit
from labkit import cuda
from labkit.views import memory, schedule


@pytest.fixture
def shell(monkeypatch):
    found = types.SimpleNamespace(user_ns={}, events=EventManager(None, available_events))
    monkeypatch.setattr("IPython.get_ipython", lambda: found)
    return found


def cell(factor):
    @cuda.jit
    def scale(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] * factor

    return scale


def other_cell():
    @cuda.jit
    def scale(x, out):
        i = cuda.grid(1)
        out[i] = x[i]

    return scale


def run(kernel, filename="/tmp/ipykernel_1/2.py"):
    """A trace as that of a kernel in a cell: its file does not exist."""
    x = np.ones(32, np.float32)
    return replace(labkit.simulate(kernel, 1, 32, x, np.zeros_like(x)), filename=filename)


def after_a_cell(shell):
    shell.events.trigger("post_run_cell", None)


def test_an_edited_kernel_outdates_its_pictures_until_it_is_as_it_was(shell):
    kernel = shell.user_ns["scale"] = cell(2)
    view = memory(run(kernel), array="x")
    after_a_cell(shell)
    assert not view.data.get("outdated")
    shell.user_ns["scale"] = cell(2)  # the same cell, run again
    after_a_cell(shell)
    assert not view.data.get("outdated")
    shell.user_ns["scale"] = other_cell()
    after_a_cell(shell)
    assert view.data["outdated"] == "`scale`"
    shell.user_ns["scale"] = cell(2)
    after_a_cell(shell)
    assert not view.data["outdated"]


def test_a_kernel_of_the_package_is_not_mistaken_for_one_of_that_name_in_the_notebook(shell):
    view = memory(run(cell(2), filename=__file__), array="x")
    shell.user_ns["scale"] = other_cell()
    after_a_cell(shell)
    assert not view.data.get("outdated")


@pytest.mark.parametrize("value", [None, 3, "scale", len])
def test_a_name_that_is_no_kernel_any_more_outdates_nothing(shell, value):
    view = memory(run(cell(2)), array="x")
    shell.user_ns["scale"] = value
    after_a_cell(shell)
    assert not view.data.get("outdated")


def test_a_picture_of_orders_looks_too(shell):
    kernel = shell.user_ns["scale"] = cell(2)
    x = np.ones(64, np.float32)
    view = schedule(replace(labkit.explore(kernel, 1, 64, x, np.zeros_like(x)), filename="/tmp/ipykernel_1/2.py"))
    shell.user_ns["scale"] = other_cell()
    after_a_cell(shell)
    assert view.data["outdated"] == "`scale`"


def test_a_picture_that_is_gone_looks_no_more(shell):
    view = memory(run(cell(2)), array="x")
    assert len(shell.events.callbacks["post_run_cell"]) == 1
    del view
    after_a_cell(shell)
    assert not shell.events.callbacks["post_run_cell"]


@pytest.mark.needs("chromium")
def test_an_outdated_picture_says_so_and_fades(browser, tmp_path):
    view = memory(run(cell(2)), array="x")
    view.data["outdated"] = "`scale`"
    view.save_html(tmp_path / "page.html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.get_by_role("status").first.inner_text() == (
        "scale has changed since this picture was made: run its cell again."
    )
    assert page.locator(".body.stale canvas").count() > 0
    page.close()
