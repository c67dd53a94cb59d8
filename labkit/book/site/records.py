"""A page per GPU with its records: each problem's fastest step beside the fastest baseline, the worst ratios first."""

from dataclasses import dataclass
from itertools import groupby
from math import exp, log
from typing import Any

from labkit import results
from labkit.table import count_text, short_number

# What is no other way to compute the same in the same format: a bound, our own kernels, or another format.
_NO_BASELINE = {"copy", "copies", "cuMemcpy", "CUDA C++", "standard (labkit)"}
_OTHER_FORMATS = ("TF32", "bfloat16", "bf16")
_SHOWN = 10  # rows of an operation before the fold


@dataclass(frozen=True)
class Comparison:
    """The fastest recorded step and the fastest recorded baseline of one problem in one format."""

    operation: str
    problem: str
    format: str
    step: str
    time_ms: float
    baseline: str
    baseline_time_ms: float

    @property
    def ratio(self) -> float:
        """The baseline's time over ours: above 1, ours is faster."""
        return self.baseline_time_ms / self.time_ms


def machines() -> list[str]:
    """Return the GPUs that have records with baselines."""
    return [machine for machine in dict.fromkeys(machine for machine, _ in results.recorded()) if compare(machine)]


def compare(machine: str) -> list[Comparison]:
    """Return a comparison for each recorded problem, by operation and then by ratio, the worst first.

    Records of one operation are taken together: a layer that direct convolution loses may be Winograd's.
    """
    rows: dict[Any, list[dict[str, Any]]] = {}
    for record in (results.load(name, found) for found, name in results.recorded() if found == machine):
        for row in record.rows if "gpu" in record.header else ():
            if "problem" in row and "time_ms" in row:
                rows.setdefault(_problem_key(record.operation, row), []).append(row)
    found = [one for key, group in rows.items() if (one := _comparison(key[0], group))]
    return sorted(found, key=lambda one: (one.operation, one.ratio))


def records_page(machine: str) -> str:
    """Return the page of one GPU in MyST Markdown."""
    comparisons = compare(machine)
    name = results.load(next(record for found, record in results.recorded() if found == machine), machine).gpu
    lines = [
        f"# Records: {name}",
        "",
        f"{count_text(len(comparisons), 'problem')} with a baseline, each with the fastest step and the fastest"
        " baseline of the same format that were recorded. The ratio is the baseline's time over ours: above 1, ours is"
        " faster."
        " **The worst come first.** Records of one problem may come from runs on different days; chapters compare"
        " within a run.",
        "",
        "A problem is its sizes. GEMM: M x N x K. Convolution: images x channels x height x width, then filters x"
        " height x width. Attention: batch x heads x queries x head_dim; after a slash are the heads of K and V, or"
        " the keys, where their number differs.",
        "",
        "| operation | problems | geometric mean | worst |",
        "|---|--:|--:|--:|",
    ]
    grouped = ((name, list(group)) for name, group in groupby(comparisons, key=lambda one: one.operation))
    by_operation = dict(sorted(grouped, key=lambda pair: pair[1][0].ratio))
    for operation, group in by_operation.items():
        mean = exp(sum(log(one.ratio) for one in group) / len(group))
        lines.append(f"| [{operation}](#{operation}) | {len(group)} | {mean:.2f} | {group[0].ratio:.2f} |")
    for operation, group in by_operation.items():
        lines += ["", f"({operation})=", "", f"## {operation.replace('_', ' ')}", "", *_table(group[:_SHOWN])]
        if group[_SHOWN:]:
            lines += ["", f"<details><summary>{len(group) - _SHOWN} better ratios</summary>", ""]
            lines += [*_table(group[_SHOWN:]), "", "</details>"]
    return "\n".join([*lines, ""])


def _table(comparisons):
    yield "| problem | format | ratio | our step | µs | baseline | µs |"
    yield "|---|---|--:|---|--:|---|--:|"
    for one in comparisons:
        ours, theirs = (short_number(1e3 * time) for time in (one.time_ms, one.baseline_time_ms))
        cells = one.problem, one.format, f"{one.ratio:.2f}", f"`{one.step}`", ours, one.baseline, theirs
        yield f"| {' | '.join(cells)} |"


def _problem_key(record, row):
    """Return what rows must share to be compared; a record of conv's holds gradients too, as steps of their own."""
    slug = row.get("step") or ""
    operation = "conv" if record.startswith(("conv", "implicit_gemm")) else record
    direction = slug if operation == "conv" and slug.startswith("backward") else ""
    return f"{operation}_{direction}".strip("_"), row["problem"], row["dtype"], row.get("call")


def _comparison(operation, rows):
    baselines = [row for row in rows if _is_baseline(row.get("baseline"))]
    steps = [row for row in rows if row.get("step")]
    if not baselines or not steps:
        return None
    ours = min(steps, key=lambda row: row["time_ms"])
    theirs = min(baselines, key=lambda row: row["baseline_time_ms"])
    return Comparison(
        operation, ours["problem"], ours["dtype"], ours["step"], ours["time_ms"],
        theirs["baseline"], theirs["baseline_time_ms"],
    )  # fmt: skip


def _is_baseline(name):
    return bool(name) and name not in _NO_BASELINE and not any(format in name for format in _OTHER_FORMATS)
