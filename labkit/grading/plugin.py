"""A pytest plugin that writes the result of each notebook cell as a line of JSON, and ends with the kernel."""

import json
import time
from pathlib import Path
from queue import Empty

import nbval.plugin
import psutil
import pytest
from nbval.kernel import RunningKernel

from labkit.grading.process import tie_to_parent

MAX_CHARACTERS = 4000  # of an output
MAX_DETAILS = 300_000  # characters: more than any judgement's JSON, which must not be cut
POLL_S = 1


class Kernel(RunningKernel):
    """A kernel for which no one waits once it is dead; `died` tells that from a timeout, which nbval does not."""

    died = False

    def get_message(self, stream, timeout=None):
        """Return the next message within the timeout and the kernel's life."""
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while True:
            left = end - time.monotonic()
            try:
                return super().get_message(stream, timeout=max(0, min(POLL_S, left)))
            except Empty:
                if left <= POLL_S or not self.is_alive():
                    raise

    def interrupt(self):
        """Stop what takes too long, if the kernel lives."""
        self.died = not self.is_alive()
        if not self.died:
            super().interrupt()


def pytest_addoption(parser):
    parser.addoption("--cell-results", type=Path, help="file that receives one JSON line per cell")
    parser.addoption("--cell-details", type=Path, help="file to which cells write details of their results")


def pytest_configure(config):
    tie_to_parent()
    nbval.plugin.RunningKernel = Kernel


def pytest_runtest_setup(item):
    item.cpu_s_before = _cpu_s(item.parent.kernel)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" or report.failed:
        kernel = item.parent.kernel
        dead = not kernel or not kernel.is_alive()
        hung = item.parent.timed_out and not (kernel and kernel.died)
        line = {
            "cell": item.cell.id,
            "passed": call.when == "call" and report.outcome == "passed",
            "hung": hung,
            "dead": dead and not hung,
            "output": _last_output(item.test_outputs or ()),
            "cpu_s": 0 if dead else _cpu_s(kernel) - item.cpu_s_before,
            "details": _take_details(item.config.getoption("--cell-details")),
        }
        with item.config.getoption("--cell-results").open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(line)}\n")  # a new line even after a cut-off one
        if dead or hung:
            item.session.shouldstop = "the kernel hangs or is dead"
    return report


def _cpu_s(kernel):
    """Return the CPU time of a kernel so far; 0 if it is dead."""
    try:
        return sum(psutil.Process(kernel.km.provisioner.pid).cpu_times()[:2])
    except (AttributeError, psutil.Error):
        return 0


def _take_details(path):
    """Return what the cell wrote to the file of details, and empty the file."""
    if path is None or not path.exists():
        return ""
    text = path.read_text(encoding="utf-8")[:MAX_DETAILS]
    path.unlink()
    return text


def _last_output(outputs):
    """Return the cell's last error or displayed text, cut if it is too long."""
    for output in reversed(outputs):
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}"[:MAX_CHARACTERS]
        if output.output_type == "stream":
            return output.text[:MAX_CHARACTERS]
        if "data" in output:
            return str(output.data.get("text/plain", ""))[:MAX_CHARACTERS]
    return ""
