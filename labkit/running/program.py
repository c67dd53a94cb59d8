"""Run a program whose kernels run on the simulator."""

import inspect
import runpy
import sys
import traceback
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from labkit.cuda import simulated
from labkit.running import stand_in
from labkit.running.collector import PACKAGE, Collector
from labkit.running.progress import Progress
from labkit.simulator import host
from labkit.simulator.errors import SimulatorError
from labkit.simulator.explorer.orders import simulate_in_orders
from labkit.simulator.pace import Pace
from labkit.simulator.seam import global_compiler_lock

# pytest looks for plugins after labkit was imported, and would warn of that in each report.
NO_WARNING = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
HIDDEN = "<frozen runpy>", inspect.getfile(type(global_compiler_lock))  # files whose frames stand between labkit's


def run_program(arguments: Sequence[str], collector: Collector, *, is_module: bool = False) -> int:
    """Run a script, or a module as `python -m` does, with `numba.cuda` on the simulator.

    Parameters
    ----------
    arguments
        Path of the script, or name of the module, and the program's own arguments.
    collector
        Receives all launches.

    Returns
    -------
    int
        The program's exit status; 1 if it ended with an exception, whose traceback is printed.
    """
    collect_launches(collector)
    stand_in.install()
    name, *own_arguments = arguments
    sys.argv = [name, *(NO_WARNING if is_module and name == "pytest" else ()), *own_arguments]
    sys.path.insert(0, "" if is_module else str(Path(name).resolve().parent))
    try:
        if is_module:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(name, run_name="__main__")
    except SystemExit as end:
        return _exit_status(end.code)
    except KeyboardInterrupt:
        print("labkit: interrupted", file=sys.stderr)
        return 130
    except BaseException as error:
        print("".join(shortened(error).format()), end="", file=sys.stderr)
        return 1
    return 0


def collect_launches(*collectors: Collector) -> None:
    """Give all later launches to collectors, instead of warning of their findings."""

    def add(trace, time_s):
        for line in trace.printed:
            print(line)
        for collector in collectors:
            collector.add(trace, time_s)

    def add_copy(finding, store):
        for collector in collectors:
            collector.add_copy(finding, store)

    simulated.on_launch, host.on_copy = add, add_copy


@contextmanager
def options_of_launches(
    explore: bool, time_limit_s: float | None, option: str = "--time-limit", stream: TextIO | None = None
):
    """Within the context, run launches in several orders if `explore`, check each up to the limit.

    `option` is the one that sets the limit. Progress is written to the stream, or to the error stream.
    """
    progress = Progress(stream)

    @contextmanager
    def options_of(kernel):
        pace = Pace(time_limit_s, option)
        with progress.launch(kernel, pace):
            yield {"pace": pace, "by": simulate_in_orders} if explore else {"pace": pace}

    before, simulated.launch_options = simulated.launch_options, options_of
    try:
        with progress.running():
            yield
    finally:
        simulated.launch_options = before


def shortened(error: BaseException) -> traceback.TracebackException:
    """Return an exception's traceback without the frames of labkit, and of what starts a program or a test."""
    report = traceback.TracebackException.from_exception(error)
    chained = report
    while chained:
        chained.stack[:] = [frame for frame in chained.stack if not _is_hidden(frame.filename)]
        chained = chained.__cause__ or chained.__context__
    if isinstance(error, SimulatorError):
        report.__context__ = None
    return report


def _is_hidden(filename):
    return (
        filename.startswith((PACKAGE, "<lockstep "))
        or filename in HIDDEN
        or bool({"_pytest", "pluggy"} & {*Path(filename).parts})
    )


def _exit_status(code):
    """Return the status of `sys.exit(code)`, as Python has it."""
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1
