"""A pytest plugin: when nbval has run the cells of a solved chapter, its kernels are checked in the same process.

`chapter_kernels` says what must hold. On a machine with a GPU chapters run on it, so that the simulator has nothing to
record; with LABKIT_DEVICE=simulator the kernels are checked on such a machine too.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from changes import slug
from nbval.plugin import IPyNbCell

from labkit import places
from labkit.machine import device

TESTS = Path(__file__).parent
SOLUTIONS = places.folder("notebooks") / "solutions"
CHECKS = {
    "errors_are_found_in_no_kernel_that_is_right": (),
    "every_playground_runs_where_its_sliders_stand_first": (),
    "a_reader_who_has_run_all_cells_may_go_back_and_move_sliders": (),
    "every_kernel_has_numbas_types_and_assembles_without_spills": ("numba-cuda", "toolkit"),
}
TIMEOUT_S = 300
ANSI = re.compile(r"\x1b\[[\d;]*m")


class KernelCheck(pytest.Item):
    """Runs one function of `chapter_kernels` in the kernel of a notebook whose cells have run."""

    def runtest(self):
        run_in(self.parent.kernel, f"__import__('chapter_kernels').{self.name}({slug(self.path)!r})")

    def reportinfo(self):
        return self.path, 0, f"{self.path.stem}: {self.name}"


def run_in(kernel, code):
    """Run code in the notebook's kernel; fail with the traceback of what it raises."""
    reply = kernel.kc.execute_interactive(
        code, store_history=False, allow_stdin=False, timeout=TIMEOUT_S, output_hook=lambda message: None
    )["content"]
    if reply["status"] != "ok":
        pytest.fail(ANSI.sub("", "\n".join(reply.get("traceback", [reply["status"]]))), pytrace=False)


@cache
def has_kernels(path: Path) -> bool:
    return path.parent == SOLUTIONS and "cuda.jit" in path.read_text(encoding="utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Puts the checks of a chapter behind its last cell."""
    last = {item.parent: item for item in items if isinstance(item, IPyNbCell) and has_kernels(item.path)}
    for notebook, cell in last.items():
        behind = items.index(cell) + 1
        items[behind:behind] = [checked(notebook, *check) for check in CHECKS.items()]


def checked(notebook, name, needs):
    check = KernelCheck.from_parent(notebook, name=name)
    check.add_marker(pytest.mark.needs(*needs))
    if device.current().kind == "gpu":
        check.add_marker(pytest.mark.skip(reason="the chapter runs on the GPU; LABKIT_DEVICE=simulator checks this"))
    return check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Has a chapter's kernel record what runs, before its first cell; no name is left among the chapter's own."""
    result = yield
    notebook = item.parent
    if isinstance(item, (IPyNbCell, KernelCheck)) and has_kernels(item.path) and not hasattr(notebook, "is_recorded"):
        notebook.is_recorded = True
        run_in(notebook.kernel, f"__import__('sys').path.append({str(TESTS)!r})")
        run_in(notebook.kernel, "__import__('chapter_kernels').record()")
    return result
