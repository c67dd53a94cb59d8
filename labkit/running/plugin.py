"""The pytest plugin: `pytest --labkit` runs the kernels of a test suite on the simulator.

A test whose launches have errors fails with them. pytest loads this module wherever labkit is installed, so it imports
nothing else until it is asked for.
"""

import argparse
from contextlib import ExitStack
from io import StringIO

import pytest

COLLECTORS = pytest.StashKey()  # the session's collector


def pytest_addoption(parser, pluginmanager):
    # pytest rewrites the assertions of all modules of a package with a plugin; those of labkit's own would take seconds
    getattr(pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("labkit")
    group = parser.getgroup("labkit")
    group.addoption(
        "--labkit",
        action="store_true",
        help="run numba.cuda kernels on labkit's simulator; a launch with an error fails its test",
    )
    group.addoption(
        "--labkit-explore",
        action="store_true",
        help="run each launch in several orders of its blocks and warps; a result that depends on it is an error",
    )
    group.addoption(
        "--labkit-time-limit",
        type=_seconds,
        metavar="SECONDS",
        help="check each launch for this time, then run its other blocks unchecked, so that results stay complete",
    )


def _seconds(text):
    if (seconds := float(text)) >= 0:
        return seconds
    raise argparse.ArgumentTypeError(f"a time limit is at least 0 seconds, not {text}")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Put the simulator in numba's place before any conftest imports numba's `cuda`."""
    options = early_config.known_args_namespace
    if options.labkit:
        from labkit.running import program, stand_in
        from labkit.running.collector import Collector
        from labkit.simulator.warp_order import ORDERS

        stand_in.install()
        early_config.stash[COLLECTORS] = collector = Collector(orders=1 + len(ORDERS) if options.labkit_explore else 1)
        program.collect_launches(collector)
        launches = ExitStack()
        limit = options.labkit_time_limit, "--labkit-time-limit"
        unseen = StringIO()  # a test's own output stays as it is
        launches.enter_context(program.options_of_launches(options.labkit_explore, *limit, unseen))
        early_config.add_cleanup(launches.close)
    elif options.labkit_explore or options.labkit_time_limit is not None:
        raise pytest.UsageError("--labkit-explore and --labkit-time-limit need --labkit, which runs the simulator")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Collect a test's launches apart, so that it fails with their errors, whatever earlier tests showed."""
    session = item.config.stash.get(COLLECTORS, None)
    if session is None:
        return (yield)
    from labkit.running import program, text
    from labkit.running.collector import Collector
    from labkit.simulator.errors import SimulatorError

    own, refused = Collector(), ""
    program.collect_launches(own, session)
    try:
        result = yield
    except SimulatorError as error:
        report = program.shortened(error)  # the error first: pytest's summary shows the first line
        refused = "".join([*report.format_exception_only(), *report.stack.format()])
    finally:
        program.collect_launches(session)
    if refused:  # here, since in the handler pytest would show the error a second time
        pytest.fail(refused, pytrace=False)
    if own.errors:
        pytest.fail("\n\n".join(map(text.describe, own.errors)), pytrace=False)
    return result


def pytest_sessionfinish(session):
    """Send a worker's launches to the process that started it (pytest-xdist)."""
    collector = session.config.stash.get(COLLECTORS, None)
    if collector is not None and hasattr(session.config, "workeroutput"):
        session.config.workeroutput["labkit"] = collector.to_bytes()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add the launches of a worker that has ended (pytest-xdist); one that crashed sends none."""
    collector = node.config.stash.get(COLLECTORS, None)
    if collector is not None and (data := getattr(node, "workeroutput", {}).get("labkit")):
        collector.merge(collector.from_bytes(data))


def pytest_terminal_summary(terminalreporter, config):
    """Print the table of kernels."""
    collector = config.stash.get(COLLECTORS, None)
    if collector is not None:
        from labkit.running import text

        terminalreporter.section("kernels on labkit's simulator")
        seconds = sum(kernel.time_s for kernel in collector.kernels.values())
        terminalreporter.write_line(text.as_text(text.summarise(collector, seconds)))
