"""The report for a terminal: findings as they come, and a table of kernels at the end, in 80 columns."""

import linecache
import os
import textwrap

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from labkit.running.collector import Collector, KernelTotals, MergedFinding
from labkit.table import count_text

COLUMNS = 80


def describe(merged: MergedFinding) -> str:
    """Return a finding in a few lines: where, the code, what is wrong and how to fix it."""
    finding = merged.finding
    where = f" in kernel {merged.kernel}" if merged.kernel else ""
    lines = [f"{place(merged)}: {finding.severity} ({finding.kind}){where}"]
    for number in dict.fromkeys(filter(None, (finding.line, finding.other_line))):
        if code := linecache.getline(merged.file, number).strip():
            lines.append(f"  {number:>5} | {code}")
    lines += textwrap.wrap(finding.message, COLUMNS - 4, initial_indent="    ", subsequent_indent="    ")
    action = "Copied" if finding.kind == "unwritten" and not finding.array else "Launched"
    return "\n".join([*lines, f"    {action} at {short_path(merged.launch_file)}:{merged.launch_line}."])


def place(merged: MergedFinding) -> str:
    """Return the file and line of a finding, as editors and terminals link them."""
    return f"{short_path(merged.file)}:{merged.finding.line}"


def summarise(collector: Collector, time_s: float) -> Group | str:
    """Return the advice, the table of kernels, how often each finding was made, and the totals."""
    if not collector.kernels:
        return "labkit: the program launched no kernel"
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    table.add_column("kernel", overflow="fold")
    for title in "launches", "threads", "sectors/\nrequest", "bank\nconflicts", "errors", "advice", "seconds":
        table.add_column(title, justify="right")
    for kernel in collector.kernels.values():
        table.add_row(*_row(collector, kernel))
    repeated = [f"{line} in {n:,} launches, {count:,} times" for line, (n, count) in _repetitions(collector) if n > 1]
    launches = sum(kernel.launches for kernel in collector.kernels.values())
    errors, advice = count_text(len(collector.errors), "error"), count_text(len(collector.advice), "piece")
    total_launches, kernels = count_text(launches, "launch", "launches"), count_text(len(collector.kernels), "kernel")
    totals = [f"labkit: {errors} and {advice} of advice in {total_launches} of {kernels}, {time_s:.1f} s"]
    if collector.orders > 1:
        totals.append(f"each launch ran in up to {collector.orders} orders of its blocks and warps")
    if in_part := sum(merged.launches for merged in collector.advice if merged.finding.kind == "time-limit"):
        totals.append(f"{count_text(in_part, 'launch', 'launches')} checked only in part, by the time limit")
    return Group(*map(Text, _advice(collector)), table, "", *map(Text, repeated), *map(Text, totals))


def _advice(collector: Collector) -> list[str]:
    """Return the advice: the first piece per kind and line."""
    by_line = {(place(merged), merged.finding.kind): describe(merged) + "\n" for merged in reversed(collector.advice)}
    return list(reversed(by_line.values()))


def _repetitions(collector: Collector):
    """Return, by line and kind of finding, the launches that had it and the occurrences in all of these."""
    totals: dict[str, tuple[int, int]] = {}
    for merged in collector.findings:
        line = f"{place(merged)}: {merged.finding.kind}"
        _, count = totals.get(line, (0, 0))
        totals[line] = collector.launches_by_line[merged.line_and_kind], count + merged.count
    return totals.items()


def console(**options) -> Console:
    """Return a console of 80 columns without markup."""
    return Console(width=COLUMNS, soft_wrap=True, highlight=False, markup=False, **options)


def as_text(report: Group | str) -> str:
    """Return a report as plain text."""
    target = console()
    with target.capture() as captured:
        target.print(report)
    return captured.get().rstrip("\n")


def short_path(path: str) -> str:
    """Return a path as seen from the current folder, if that is shorter."""
    try:
        return min(os.path.relpath(path), path, key=len)
    except ValueError:  # on another drive of Windows
        return path


def _row(collector: Collector, kernel: KernelTotals) -> list[str]:
    counters = kernel.counters
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    requests = counters["global_load_requests"] + counters["global_store_requests"]
    return [
        kernel.kernel,
        f"{kernel.launches:,}",
        f"{kernel.threads:,}",
        f"{sectors / requests:.1f}" if requests else "-",
        f"{counters['bank_conflicts']:,}",
        str(len(collector.of_kernel(kernel, "error"))),
        str(len(collector.of_kernel(kernel, "advice"))),
        f"{kernel.time_s:.2f}",
    ]
