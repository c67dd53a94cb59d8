"""Grades as JUnit XML."""

from itertools import groupby
from xml.etree import ElementTree

from labkit.grading.grades import Grade


def make_junit(grades: list[Grade]) -> str:
    """Make one test suite per student and one test case per exercise; what could not be graded is an error."""
    root = ElementTree.Element("testsuites", name="labkit grade")
    for student, rows in groupby(grades, key=lambda row: row.student):
        rows = list(rows)
        errors = sum(row.points is None for row in rows)
        failures = sum(map(_is_failure, rows))
        counts = {"tests": str(len(rows)), "failures": str(failures), "errors": str(errors)}
        suite = ElementTree.SubElement(root, "testsuite", {"name": student, **counts})
        for row in rows:
            case = ElementTree.SubElement(suite, "testcase", classname=student, name=row.exercise or row.submission)
            properties = ElementTree.SubElement(case, "properties")
            for name in ("points", "out_of", "submission", "seed", "by_hand", "note", "late", "ran"):
                ElementTree.SubElement(properties, "property", name=name, value=_format_value(getattr(row, name)))
            if row.points is None or _is_failure(row):
                kind = "error" if row.points is None else "failure"
                element = ElementTree.SubElement(case, kind, type=row.reason, message=row.message.split("\n")[0])
                element.text = "\n".join(filter(None, [row.message, row.pattern]))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _is_failure(row):
    return row.points is not None and (row.points < row.out_of or not row.exercise)


def _format_value(value):
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
