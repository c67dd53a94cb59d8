"""What the notebook's kernel records while a chapter runs, and what must hold of it: used by `notebook_checks`.

The kernels that a chapter runs have numba's types and assemble, and errors are found only in those that it shows
because they are wrong.
"""

from collections import namedtuple
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit import places
from labkit.simulator import run
from labkit.simulator.values import NamedTuple, TensorMap, Tuple
from labkit.views.playground import Playground

OPERATIONS = tuple(f"labkit.{name}." for name in places.operations())
# The kernels that a chapter, named by its slug, shows because they are wrong.
WRONG = {
    "start-here": {"hasty"},
    "first-gpu-matmul": {"double_unguarded"},
    "tiled-gemm": {"no_first_barrier", "no_second_barrier"},
    "trusting-the-simulator": {"counter", "past_the_end"},
    "your-own-code": {"count", "smooth"},
}
# Where a chapter asks its reader to move sliders to see errors.
WRONG_SETTINGS = {
    "feeding-tensor-cores": ("STAGES = 1, AHEAD = 1", "STAGES = 2, AHEAD = 2"),
    "hopper-gemm": ("GIVES_BACK = 0",),
    "layouts-nhwc": ("FIRST = 2, LAYOUT = NCHW",),
}

TARGETS = [(7, 5), (8, 0), (9, 0, "a")]  # "a": with wgmma

translated_kernels = {}
names, wrong_names, playgrounds = set(), set(), []
pages_in_work = []  # playgrounds that run their other settings for the page, some of which are meant to be wrong


def record():
    """Keep every kernel that is translated, the names of those that run, and every playground that opens."""
    translate, trace_of = run.translate.translate, run.report.make_trace
    open_playground, make_page = Playground.__init__, Playground.page_data

    def translated(function, kinds, **options):
        program = translate(function, kinds, **options)
        translated_kernels[function.__code__] = function, kinds, program
        return program

    def trace(launch, *arguments):
        trace = trace_of(launch, *arguments)
        names.add(launch.function.__name__)
        if trace.errors and not launch.disturbance.what and not pages_in_work:  # a check takes barriers out
            wrong_names.add(launch.function.__name__)
        return trace

    def opened(view, *arguments):
        playgrounds.append(view)
        open_playground(view, *arguments)

    def page_data(view):
        pages_in_work.append(view)
        try:
            return make_page(view)
        finally:
            pages_in_work.pop()

    run.translate.translate, run.report.make_trace = translated, trace
    Playground.__init__, Playground.page_data = opened, page_data


def errors_are_found_in_no_kernel_that_is_right(chapter):
    assert names, "no kernel ran: the cells of the chapter must run before this"
    assert wrong_names == WRONG.get(chapter, set()), f"errors are found in {wrong_names}"


def every_playground_runs_where_its_sliders_stand_first(chapter):
    errors = [view.data["error"] for view in playgrounds if view.data["error"]]
    assert not errors, errors


def a_reader_who_has_run_all_cells_may_go_back_and_move_sliders(chapter):
    for view in playgrounds:
        start = {name: values[view.data["positions"][name]] for name, values in view.choices.items()}
        for name, values in view.choices.items():
            for value in (values[0], values[-1]):
                view.move(**start | {name: value})
                setting, error = view.data["setting"], view.data["error"]
                found = [each["message"] for each in view.data["findings"] if each["severity"] == "error"]
                is_meant = any(part in setting for part in WRONG_SETTINGS.get(chapter, ()))
                assert not error and bool(found) == is_meant, (setting, error, found[:1])


def every_kernel_has_numbas_types_and_assembles_without_spills(chapter):
    from assembler import assembled, ptx_for_the_oldest, some_of
    from numba_oracle import variable_types

    from labkit.cuda.compiling import bind_cuda

    assert translated_kernels
    for function, kinds, program in list(translated_kernels.values()):
        argument_types = tuple(map(type_on_a_gpu, kinds))
        if not program.compiled:  # a device function's variables would be among them
            assert program.variables == variable_types(bind_cuda(function), argument_types), function
        if function.__module__.startswith(OPERATIONS):  # tested elsewhere
            continue
        ptx, targets = ptx_for_the_oldest(function, argument_types, TARGETS)
        with TemporaryDirectory() as folder:
            for target in some_of(targets):
                report, _ = assembled(ptx, target, Path(folder))
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
