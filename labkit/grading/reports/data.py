"""Grades as JSON, for programs."""

import json
from dataclasses import asdict

from labkit.grading.grades import Grade, sum_points


def make_json(grades: list[Grade], remark: str, assignment: str) -> str:
    """Return the assignment, the totals by student, and all rows as JSON."""
    summary = {name: {"points": points, "out_of": out_of} for name, (points, out_of) in sum_points(grades).items()}
    content = {"assignment": assignment, "remark": remark, "totals": summary, "grades": [asdict(row) for row in grades]}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
