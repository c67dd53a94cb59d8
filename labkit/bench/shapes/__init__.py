"""`labkit bench shapes`: calls as a user makes them, untuned, on shapes of models that people run.

Each row stands beside the baselines of its own run. Rows are stored as they come, and a record that lacks some is
continued: the bench takes an hour, and may end anywhere.
"""

from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import geometric_mean

from labkit import results
from labkit.bench import (
    _harness,
    _record,
    attention,
    attention_backward,
    attention_decode,
    conv,
    gemm_tensor,
    norm,
    norm_backward,
    norm_rows,
    softmax,
)
from labkit.bench.shapes.models import Case, cases
from labkit.calls.plan import make_plan
from labkit.calls.tuner import operation_of
from labkit.conv.interface.convolution import ConvByProblem

NAME, TITLE = "shapes", "Calls on shapes of models"
UNUSED = "lengths", "table"  # arrays of ragged sequences and of pages, which no case has
SLOW = 0.9  # of the fastest baseline's speed: such rows are printed
BASELINES: dict[str, Callable] = {  # of calls
    "gemm.multiply": gemm_tensor.baselines,
    "attention.attend": attention.baselines,
    "attention.attend_backward": attention_backward.baselines,
    "attention.attend_cached": attention_decode.baselines,
    "norm.layer_norm": norm_rows.forward_baselines,
    "norm.rms_norm": norm_rows.forward_baselines,
    "norm.layer_norm_backward": norm_rows.backward_baselines,
    "norm.rms_norm_backward": norm_rows.backward_baselines,
    "norm.batch_norm": norm.baselines,
    "norm.batch_norm_backward": norm_backward.baselines,
    "softmax.softmax": softmax.forward_baselines,
    "softmax.softmax_backward": softmax.backward_baselines,
    "conv.forward": conv.baselines,
    "conv.backward_data": conv.baselines,
    "conv.backward_filter": conv.baselines,
}


def main(record: bool = False, out: Path | None = None) -> None:
    gpu = _record.require_gpu("times kernels")
    rows = find_rows(gpu.name, out or results.FOLDER) if record or out else []
    done = {_key(row) for row in rows}
    for case in cases():
        if _name(case) not in done:
            _record.report_progress(f"timing {case.call} {case.problem} in {case.format.name}, of {case.model}")
            rows += measure(case)
            if record or out:
                results.save(results.Results(NAME, _record.header(), rows), gpu.name, out or results.FOLDER)
    print_summary(f"{TITLE} on {gpu.name}", rows)


def find_rows(machine: str, folder: Path) -> list[dict]:
    """Return the rows of a record that is to be continued: none if it is whole, and is measured anew."""
    try:
        rows = results.load(NAME, results.slug(machine), folder).rows
    except KeyError:
        return []
    known = {_name(case) for case in cases()}
    rows = [row for row in rows if _key(row) in known]  # the list may have changed
    return [] if {_key(row) for row in rows} == known else rows


def measure(case: Case) -> list[dict]:
    """Return the rows of a case: one for each baseline."""
    benchmark = _harness.Benchmark(
        NAME, TITLE, ladders=(), ours={"call": _contender(case.call)}, baselines=BASELINES[case.call]
    )
    rows = _harness.measure(benchmark, case.problem, case.format)
    return [{**row, "call": case.call, "model": case.model} for row in rows]


def _contender(name: str) -> _harness.Contender:
    """Return the launch of a call that takes its arrays in the order of its problem's operands."""
    package, _, call_name = name.partition(".")
    call = getattr(import_module(f"labkit.{package}"), call_name)

    def launch_call(problem, format, *operands):
        arrays = [X for X in operands if hasattr(X, "dtype")]
        if package == "gemm":
            operation, order = call.operation(transpose_b=True, format=format), ("A", "B", "C")
        elif package == "conv":
            operation, order = ConvByProblem(problem, format), ConvByProblem.arrays
        else:
            operation, order = operation_of(call, problem, format), call.operation.arrays
        named = {name: X for name, X in zip(order, arrays, strict=True) if name not in UNUSED}
        plan = make_plan(operation, named)
        return lambda stream: plan(stream=stream)

    return launch_call


def print_summary(title: str, rows: list[dict]) -> None:
    """Print the mean of each call and format, relative to the fastest baseline, then the slow problems."""
    by_case = defaultdict(list)
    for row in rows:
        if "baseline" in row:
            by_case[_key(row)].append(row)
    worst = [min(found, key=lambda row: row["ratio"]) for found in by_case.values()]
    means = []
    for call, dtype in dict.fromkeys((row["call"], row["dtype"]) for row in worst):
        ratios = [row["ratio"] for row in worst if (row["call"], row["dtype"]) == (call, dtype)]
        figures = {"problems": len(ratios), "mean": geometric_mean(ratios), "worst": min(ratios)}
        means.append({"call": call, "dtype": dtype, **figures})
    _record.print_table(title, means, {"call": "", "dtype": "", "problems": "d", "mean": ".2f", "worst": ".2f"})
    slow = sorted((row for row in worst if row["ratio"] < SLOW), key=lambda row: row["ratio"])
    columns = {"ratio": ".2f", "call": "", "dtype": "", "problem": "", "model": "", "baseline": "", "time_ms": ".4f"}
    _record.print_table(f"Below {SLOW} of the fastest baseline", slow, columns)


def _name(case: Case) -> tuple[str, str, str, str]:
    return case.model, case.call, str(case.problem), case.format.name


def _key(row: dict) -> tuple[str, str, str, str]:
    return row["model"], row["call"], row["problem"], row["dtype"]
