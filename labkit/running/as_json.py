"""The report as JSON: every finding and kernel, for other programs."""

import json
from dataclasses import asdict
from typing import Any

from labkit.running.collector import Collector


def to_json(collector: Collector, status: int, time_s: float) -> str:
    """Return the report as a JSON object: `status`, `time_s`, `findings` and `kernels`."""
    findings = [{**asdict(merged.finding), **_without_finding(merged)} for merged in collector.findings]
    kernels = [asdict(kernel) for kernel in collector.kernels.values()]
    data = {"status": status, "time_s": round(time_s, 3), "findings": findings, "kernels": kernels}
    return json.dumps(data, indent=2) + "\n"


def _without_finding(merged) -> dict[str, Any]:
    """Return the fields of a merged finding apart from the finding, whose `count` they replace."""
    return {name: value for name, value in vars(merged).items() if name != "finding"}
