"""`labkit run`: run a program, report each error when a launch shows it, and everything else at the end."""

import time
from collections.abc import Sequence
from pathlib import Path

from labkit.running import text
from labkit.running.as_json import to_json
from labkit.running.collector import Collector
from labkit.running.github import to_annotations
from labkit.running.junit import to_junit
from labkit.running.program import options_of_launches, run_program
from labkit.simulator.warp_order import ORDERS


def run_and_report(
    program: Sequence[str],
    *,
    is_module: bool = False,
    json: Path | None = None,
    junit: Path | None = None,
    github: bool = False,
    explore: bool = False,
    time_limit_s: float | None = None,
) -> int:
    """Run a program as `run_program`; return its exit status, or 1 if it had none and a kernel has an error.

    Reports go to the error stream, so that the program's own output stays as it is; annotations for GitHub, which reads
    them there, go to the output. `explore` and `time_limit_s` are those of `options_of_launches`.
    """
    start = time.perf_counter()
    errors = text.console(stderr=True)

    def print_error(merged):
        if merged.finding.severity == "error":
            errors.print(text.describe(merged), end="\n\n")

    collector = Collector(print_error, orders=1 + len(ORDERS) if explore else 1)
    with options_of_launches(explore, time_limit_s):
        status = run_program(program, collector, is_module=is_module)
    time_s = time.perf_counter() - start
    errors.print(text.summarise(collector, time_s))
    status = status or int(bool(collector.errors))
    if github:
        print(to_annotations(collector), end="")
    if json:
        json.write_text(to_json(collector, status, time_s), encoding="utf-8")
    if junit:
        junit.write_text(to_junit(collector, time_s), encoding="utf-8")
    return status
