"""A pytest plugin: what the cells of solved chapters show when nbval runs them is kept for the book's pages.

So `make site` after `make test` runs no chapter again.
"""

from copy import deepcopy

import pytest
from nbval.plugin import IPyNbCell

from labkit import places
from labkit.book.site import EXECUTED, SOLUTIONS
from labkit.book.site.executed import keep
from labkit.machine import device


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    result = yield
    if isinstance(item, IPyNbCell) and item.path.parent == SOLUTIONS and device.current().kind != "gpu":
        notebook = item.parent
        notebook.shown = getattr(notebook, "shown", {}) | {item.cell.id: item.test_outputs}
        if len(notebook.shown) == sum(cell.cell_type == "code" for cell in notebook.nb.cells):
            keep(with_outputs(notebook.nb, notebook.shown), item.path, places.CHECKOUT / EXECUTED)
    return result


def with_outputs(solved, shown):
    """A solved notebook with what its cells showed in place of what is stored."""
    notebook = deepcopy(solved)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = shown[cell.id]
    return notebook
