import csv
import json
from xml.etree import ElementTree

from labkit.grading.grade import Grade
from labkit.grading.report import totals, write_reports

GRADES = [
    Grade("ann.ipynb", "03.1", 2, 2, "solved"),
    Grade("ann.ipynb", "03.2", 0, 2, "=HYPERLINK(1) <b>\x1b[31m & wrong"),
    Grade("ben.ipynb", "", 0, 0, "The file is not a notebook."),
]


def test_points_are_summed_by_file():
    assert totals(GRADES) == {"ann.ipynb": (2, 4), "ben.ipynb": (0, 0)}


def test_junit_counts_what_failed_and_says_why(tmp_path):
    xml, _, _ = write_reports(GRADES, tmp_path / "new")
    suites = {suite.get("name"): suite for suite in ElementTree.parse(xml).getroot()}
    assert (suites["ann.ipynb"].get("tests"), suites["ann.ipynb"].get("failures")) == ("2", "1")
    assert "<b>" in suites["ann.ipynb"].find("testcase/failure").text
    assert "not a notebook" in suites["ben.ipynb"].find("testcase/failure").get("message")


def test_csv_holds_no_formula_and_json_holds_everything(tmp_path):
    _, table, data = write_reports(GRADES, tmp_path)
    rows = list(csv.DictReader(table.open(encoding="utf-8", newline="")))
    assert [row["points"] for row in rows] == ["2", "0", "0"]
    assert rows[1]["message"].startswith("'=")
    loaded = json.loads(data.read_text(encoding="utf-8"))
    assert loaded["totals"]["ann.ipynb"] == {"points": 2, "out_of": 4}
    assert loaded["grades"][1]["message"] == GRADES[1].message
