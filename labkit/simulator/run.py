"""`simulate`: one launch of a kernel on the lockstep simulator, from arguments to `Trace`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from labkit.machine.gpus import UnknownDevice
from labkit.machine.gpus import gpu as gpu_by_name
from labkit.simulator import report, translate
from labkit.simulator.arguments import (
    check_limits,
    check_writable,
    cluster_size,
    flatten_arguments,
    is_early,
    parse_dimensions,
    register_limit,
    typed_arguments,
    with_article,
)
from labkit.simulator.disturbance import Disturbance
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.host import DeviceArray, allocation_address, blank_mask
from labkit.simulator.launch import Launch
from labkit.simulator.limits import PATIENCE
from labkit.simulator.pace import Pace
from labkit.simulator.parted import CannotPart, Part, Parting
from labkit.simulator.reading.source import argument_names, python_function, read_source
from labkit.simulator.scheduler import Fork
from labkit.simulator.seam import global_compiler_lock
from labkit.simulator.signatures import declared_signatures
from labkit.simulator.translator.program import Program
from labkit.trace import Trace

_programs: WeakKeyDictionary = WeakKeyDictionary()  # translated kernels, by function

Dimensions = int | Sequence[int]


def simulate(
    kernel: Callable,
    grid: Dimensions,
    block: Dimensions,
    *args: Any,
    shared_bytes: int = 0,
    gpu: str = "H100 SXM",
    record: Sequence[tuple[int, ...]] = ((0, 0, 0),),
    inspect: tuple[Sequence[int] | int, Sequence[int] | int] | None = None,
    sample: int | None = None,
    seed: int = 0,
    pace: Pace | None = None,
) -> Trace:
    """Run one launch in the lockstep simulator and return its trace.

    Parameters
    ----------
    kernel
        The result of `cuda.jit`, or the Python function itself.
    grid, block
        Blocks in the grid and threads in a block: a number, or one to three of them (x, y, z).
    *args
        The kernel's arguments: NumPy arrays, device arrays, numbers. They stay as they are.
    shared_bytes
        Dynamic shared memory of each block, in bytes.
    gpu
        The GPU whose limits and caches count; a name in `labkit.machine.gpus.GPUS`.
    record
        Blocks whose raw accesses are kept in `Trace.samples`.
    inspect
        (block, thread): keep this thread's variables after every statement in `Trace.steps`.
    sample
        Least number of blocks to run, for a grid too large to run whole. Counters are then estimated from these, with
        their errors in `Counters.sample`. L2 and DRAM, which all blocks share, stay unknown (None), outputs are left
        out, and findings are those of the blocks that ran. A smaller grid runs whole.
    seed
        Seed of the choice of the sample's blocks.
    pace
        Is told how far the launch is, and says when its checks end; without one all blocks are checked.

    Returns
    -------
    Trace
        Outputs, counters, findings and samples.

    Raises
    ------
    LaunchError
        For a grid, a block, shared memory or arguments that a GPU would refuse too; for a sample of blocks that
        depend on one another.
    KernelError
        For code outside the kernel language; it names the line.
    """
    prepared = prepare_launch(kernel, grid, block, args, shared_bytes, gpu, watch=inspect is not None)

    def set_up(launch):
        launch.record(record, inspect)
        if sample is not None:
            launch.sample(sample, seed)
        if pace is not None:
            launch.pace = pace
            launch.patience = 1 if pace.time_limit_s is None else PATIENCE

    return _run(*prepared, args, set_up)


def simulate_disturbed(
    kernel: Callable, grid: Dimensions, block: Dimensions, *args: Any, disturbance: Disturbance, shared_bytes: int = 0
) -> Trace:
    """Run as `simulate`, with a disturbance."""

    def disturb(launch):
        launch.record((), None)
        launch.disturbance = disturbance

    return _run(*prepare_launch(kernel, grid, block, args, shared_bytes, "H100 SXM", watch=False), args, disturb)


def simulate_backwards(
    kernel: Callable,
    grid: Dimensions,
    block: Dimensions,
    *args: Any,
    shared_bytes: int = 0,
    record: Sequence[tuple[int, ...]] = (),
) -> Trace:
    """Run as `simulate`, block after block from the last to the first, as far as they do not wait for one another."""

    def turn_round(launch):
        launch.record(record, None)
        launch.is_backwards = True

    return _run(*prepare_launch(kernel, grid, block, args, shared_bytes, "H100 SXM", watch=False), args, turn_round)


def _run(make_launch, arguments, args, set_up):
    """Return the trace of a launch that `set_up` prepares."""
    run_once, launch = run_to_end(make_launch, set_up)
    if launch.log.read_undefined and not (launch.is_checked and _depends_on_undefined(run_once, launch)):
        launch.log.drop_undefined()
    return report.make_trace(launch, arguments, args)


def run_to_end(make_launch, set_up) -> tuple[Callable[..., Launch], Launch]:
    """Run a launch that `set_up` prepares, as often as the forks of its warps need.

    Returns
    -------
    run_once
        Function that runs it again in the same sets of warps, with `undefined` as `Launch` takes it.
    launch
        The launch after its run.
    """
    labels, parting = _WarpLabels(), Parting()

    def run_once(undefined):
        launch = make_launch(labels=labels, undefined=undefined)
        launch.parting = parting
        set_up(launch)
        with np.errstate(all="ignore"):
            launch.run()
        return launch

    while True:
        try:
            return run_once, run_once(undefined=0)
        except Fork as fork:
            labels.split(fork.classes)
        except Part as part:
            parting.warps |= part.warps
            parting.line = part.line
        except CannotPart:
            parting = Parting(is_possible=False)


def translated(kernel: Callable, *args: Any) -> Program:
    """Translate a kernel for arguments of these types; its Python is `text`, its types are `variables`.

    Raises KernelError for code outside the kernel language.
    """
    function = python_function(kernel) or kernel
    argument_types, _ = typed_arguments(argument_names(read_source(function)), args, declared_signatures(kernel))
    return _program(function, argument_types, watch=False)


@global_compiler_lock
def prepare_launch(kernel, grid, block, args, shared_bytes, gpu, **translation) -> tuple[Callable, list]:
    """Check a launch; return a function that makes a `Launch`, given the labels of its warps, and the NumPy arguments.

    `translation` goes to `translate`. One thread runs at a time, since `ast.parse` of Python 3.11 sometimes fails where
    several threads call it at once.
    """
    function = python_function(kernel) or kernel
    if type(function) is not FunctionType:
        raise LaunchError(f"the kernel must be a function, not {with_article(kernel)}; put `@cuda.jit` above a `def`")
    try:
        device = gpu_by_name(gpu)
    except UnknownDevice as error:
        raise LaunchError(str(error)) from None
    grid = parse_dimensions(grid, "grid")
    block = parse_dimensions(block, "block")
    check_limits(grid, block, shared_bytes, device)
    if function.__name__ == "<lambda>":
        raise KernelError("a kernel is a function written with `def`, not a lambda", function.__code__.co_firstlineno)
    names = argument_names(read_source(function))
    argument_types, arguments = typed_arguments(names, args, declared_signatures(kernel))
    arguments_by_name = flatten_arguments(names, args)
    blank = {name: marks for name, arg in arguments_by_name.items() if (marks := blank_mask(arg)) is not None}
    allocations = {
        name: allocation_address(arg) for name, arg in arguments_by_name.items() if isinstance(arg, DeviceArray)
    }
    program = _program(function, argument_types, **translation)
    check_writable(program.stored, arguments_by_name)
    make_launch = partial(
        Launch, program, function, grid=grid, block=block, cluster=cluster_size(kernel, grid),
        register_limit=register_limit(kernel), early=is_early(kernel), gpu=device, shared_bytes=shared_bytes,
        arguments=arguments, blank=blank, allocations=allocations,
    )  # fmt: skip
    return make_launch, arguments


def forget(function: FunctionType) -> None:
    """Forget the translations of a kernel."""
    _programs.pop(function, None)


def compile_declared(kernel: Callable) -> None:
    """Translate a kernel or device function for its declared types, as numba compiles it at once.

    Raises KernelError for code outside the kernel language.
    """
    function = python_function(kernel)
    for signature in declared_signatures(kernel):
        if kernel.device:
            translate.check_device_function(function, translate.signature_types(function, signature))
        else:
            translate_for_signature(function, signature)


def _depends_on_undefined(run_once, launch):
    """Return whether the result depends on undefined values, by runs with others in their place."""
    for sign in (1, -1):
        try:
            other = run_once(undefined=sign)
        except (Fork, Part, CannotPart, KernelError):
            return True
        if other.printed != launch.printed or other.memory() != launch.memory():
            return True
    return False


def translate_for_signature(function: FunctionType, signature: tuple) -> Program:
    """Translate a kernel for the argument types of a signature; raise KernelError as `simulate`."""
    return _program(function, translate.signature_types(function, signature), watch=False)


@global_compiler_lock
def _program(function, argument_types, **translation):
    """Return the translated kernel, as of its first use: its globals are frozen then, as numba freezes them.

    One thread translates at a time, and the others find the result.
    """
    programs = _programs.setdefault(function, {})
    key = argument_types, *translation.items()
    if key not in programs:
        try:
            programs[key] = translate.translate(function, argument_types, **translation)
        except RecursionError:
            raise KernelError(
                "this expression is nested too deeply; split it over several lines", function.__code__.co_firstlineno
            ) from None
    return programs[key]


class _WarpLabels:
    """The label of each warp; warps of one label run together.

    Each fork makes labels longer. Blocks without a label get those of the first block that has one.
    """

    def __init__(self):
        self.labels: dict[tuple[int, int], tuple] = {}
        self.by_warp: dict[int, tuple] = {}
        self.forks = 0

    def __call__(self, block, warp):
        if self.forks > 8:  # each warp runs alone then
            return (block, warp)
        return self.labels.get((block, warp), self.by_warp.get(warp, ()))

    def split(self, classes):
        """Give the warps of each class of a fork a label of their own."""
        self.forks += 1
        self.labels |= {warp: (*self(*warp), subset) for warp, subset in classes.items()}
        self.by_warp = {}
        for (_, warp), label in sorted(self.labels.items()):
            self.by_warp.setdefault(warp, label)
