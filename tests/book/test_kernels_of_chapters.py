"""The kernels that a chapter runs have numba's types and assemble, and errors are found in those alone that it says."""

import json
import linecache
from collections import namedtuple
from dataclasses import dataclass, field
from functools import cache

import pytest
from assembler import assembled, ptx_for_the_oldest
from numba_oracle import variable_types

from labkit import places
from labkit.exercises.contents import slug_of
from labkit.simulator import run
from labkit.simulator.values import NamedTuple, TensorMap, Tuple
from labkit.views.playground import Playground

pytestmark = pytest.mark.long
CHAPTERS = [
    path
    for path in sorted(places.folder("notebooks").glob("solutions/*.ipynb"))
    if "cuda.jit" in path.read_text(encoding="utf-8")
]
OPERATIONS = tuple(f"labkit.{name}." for name in places.operations())
# The kernels that a chapter shows because they are wrong.
WRONG = {
    "start-here": {"hasty"},
    "first-gpu-matmul": {"double_unguarded"},
    "tiled-gemm": {"no_first_barrier"},
    "tensor-cores": {"never_empty"},
    "layouts-nhwc": {"tile_in_vectors"},
    "trusting-the-simulator": {"counter"},
}
# Where a chapter asks its reader to move sliders to see errors.
WRONG_SETTINGS = {"tensor-cores": ("STAGES = 1, AHEAD = 1", "STAGES = 2, AHEAD = 2")}


@dataclass
class Ran:
    """What the cells of a chapter ran: kernels as they were translated, and names, of those with errors apart."""

    translated: dict = field(default_factory=dict)
    names: set = field(default_factory=set)
    wrong: set = field(default_factory=set)
    playgrounds: list = field(default_factory=list)


@cache
def ran(chapter) -> Ran:
    """What ran in the simulator when each cell of the chapter did, its exercises solved."""
    found, translate, trace_of = Ran(), run.translate.translate, run.report.trace

    def translated(function, kinds, **options):
        program = translate(function, kinds, **options)
        found.translated[function.__code__] = function, kinds, program
        return program

    def trace(launch, *given):
        trace = trace_of(launch, *given)
        found.names.add(launch.function.__name__)
        if trace.errors and not launch.disturbance.what:  # a check takes barriers out
            found.wrong.add(launch.function.__name__)
        return trace

    def opened(view, *given):
        found.playgrounds.append(view)
        open_playground(view, *given)

    open_playground = Playground.__init__
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Playground, "__init__", opened)
        patched.setattr(run.translate, "translate", translated)
        patched.setattr(run.report, "trace", trace)
        patched.setenv("LABKIT_DEVICE", "simulator")
        run_cells(chapter)
    return found


def run_cells(chapter):
    names = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(chapter.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            text, where = "".join(cell["source"]), f"<{chapter.stem} {number}>"
            linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
            exec(compile(text, where, "exec"), names)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_errors_are_found_in_no_kernel_that_is_right(chapter):
    assert ran(chapter).names
    assert ran(chapter).wrong == WRONG.get(slug_of(chapter.stem), set())


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_playground_runs_where_its_sliders_stand_first(chapter):
    assert [view.data["error"] for view in ran(chapter).playgrounds if view.data["error"]] == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_reader_who_has_run_all_cells_may_go_back_and_move_sliders(chapter):
    for view in ran(chapter).playgrounds:
        start = {name: values[view.data["positions"][name]] for name, values in view.choices.items()}
        for name, values in view.choices.items():
            for value in (values[0], values[-1]):
                view.move(**start | {name: value})
                setting, error = view.data["setting"], view.data["error"]
                found = [each["message"] for each in view.data["findings"] if each["severity"] == "error"]
                is_meant = any(part in setting for part in WRONG_SETTINGS.get(slug_of(chapter.stem), ()))
                assert not error and bool(found) == is_meant, (setting, error, found[:1])


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_kernel_has_numbas_types_and_assembles_without_spills(chapter, tmp_path):
    from labkit.cuda.compiling import bound

    assert ran(chapter).translated
    for function, kinds, program in ran(chapter).translated.values():
        argument_types = tuple(map(type_on_a_gpu, kinds))
        if not program.compiled:  # a device function's variables would be among them
            assert program.variables == variable_types(bound(function), argument_types), function
        if function.__module__.startswith(OPERATIONS):  # tested elsewhere
            continue
        ptx, targets = ptx_for_the_oldest(function, argument_types)
        for target in targets:
            report, _ = assembled(ptx, target, tmp_path)
            assert "0 bytes spill stores, 0 bytes spill loads" in report, function


def type_on_a_gpu(kind):
    """numba's type of an argument that the simulator was given."""
    from numba import types

    from labkit.ptx.tensor_copies.map_types import PixelMapType, TensorMapType

    if isinstance(kind, TensorMap):
        return PixelMapType() if kind.kind == "PixelMap" else TensorMapType(len(kind.box))
    if isinstance(kind, NamedTuple):
        return types.NamedTuple(tuple(map(type_on_a_gpu, kind.items)), namedtuple("Sizes", kind.fields))
    if isinstance(kind, Tuple):
        return types.BaseTuple.from_types(tuple(map(type_on_a_gpu, kind.items)))
    return types.Array(kind.dtype, kind.ndim, "C") if hasattr(kind, "ndim") else kind
