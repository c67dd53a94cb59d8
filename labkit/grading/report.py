"""Writes grades as JUnit XML, CSV and JSON."""

import csv
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from labkit.grading.grade import Grade

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # what XML cannot carry
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


def totals(grades: Iterable[Grade]) -> dict[str, tuple[int, int]]:
    """Points and points to be had, by submission."""
    sums: dict[str, tuple[int, int]] = {}
    for row in grades:
        points, out_of = sums.get(row.submission, (0, 0))
        sums[row.submission] = (points + (row.points or 0), out_of + row.out_of)
    return sums


def write_reports(grades: list[Grade], folder: Path) -> list[Path]:
    """Write `grades.xml`, `grades.csv` and `grades.json` into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"grades.{suffix}" for suffix in ("xml", "csv", "json")]
    _junit(grades).write(written[0], encoding="utf-8", xml_declaration=True)
    with written[1].open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(Grade.__dataclass_fields__))
        table.writeheader()
        table.writerows({key: _plain(value) for key, value in asdict(row).items()} for row in grades)
    summary = {name: {"points": points, "out_of": out_of} for name, (points, out_of) in totals(grades).items()}
    data = {"totals": summary, "grades": [asdict(row) for row in grades]}
    written[2].write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", errors="replace")
    return written


def _junit(grades):
    root = ElementTree.Element("testsuites", name="labkit grade")
    for name, rows in groupby(grades, key=lambda row: row.submission):
        rows = list(rows)
        failures = sum(row.points != row.out_of or not row.exercise for row in rows)
        suite = ElementTree.SubElement(root, "testsuite", name=name, tests=str(len(rows)), failures=str(failures))
        for row in rows:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=row.exercise or "notebook")
            properties = ElementTree.SubElement(case, "properties")
            ElementTree.SubElement(properties, "property", name="points", value=str(row.points))
            ElementTree.SubElement(properties, "property", name="out_of", value=str(row.out_of))
            if row.points != row.out_of or not row.exercise:
                failure = ElementTree.SubElement(case, "failure", message=_CONTROL.sub("?", row.message.split("\n")[0]))
                failure.text = _CONTROL.sub("?", row.message)
    return ElementTree.ElementTree(root)


def _plain(value):
    """A cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
