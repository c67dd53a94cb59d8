"""Reports with a student's worst in them are whole, valid and inert."""

import csv
import io
import json
import re
from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from xml.etree import ElementTree

import mistune
import pytest

from labkit.exercises import exercise, exercise_ids
from labkit.grading import reports
from labkit.grading.assessment import Assessment
from labkit.grading.collected import Collected
from labkit.grading.grades import Grade, make_printable, sum_points
from labkit.grading.policy import Deadline
from labkit.grading.reports import write_reports
from labkit.grading.reports.page import Picture, file_name, make_page
from labkit.grading.reports.summary import escape_markdown

HOSTILE = (
    "=HYPERLINK(1) <script>alert(1)</script> <img src=x onerror=alert(1)> ]]> &lt; \x1b[31m\x00\ud800\u202e | `a` ```\n"
    "```\n# heading\n[click](javascript:1) ![p](http://e/) @team ;=cmd()\n\t+1 </pre></section> {{7*7}} $$x$$"
)
TEXT = 'x = "</pre><script>alert(2)</script>"\ny = 1\nz = "\x1b[2J"\n'
PICTURES = {
    ("a\\x1b.ipynb", "pad-the-tile"): Picture(
        "<svg onload='alert(3)'><script>alert(3)</script></svg>", make_printable(HOSTILE)
    ),
    ("c.ipynb", "write-the-tiled-matmul"): Picture("<svg>M=33</svg>", "33 elements"),
}
GRADES = [
    Grade("=ann|<b>", "a\\x1b.ipynb", "put-the-barrier-back", 2, 2, "Solved.", 7),
    Grade(
        "=ann|<b>",
        "a\\x1b.ipynb",
        "pad-the-tile",
        0,
        2,
        make_printable(HOSTILE),
        7,
        "result",
        line=1,
        note=make_printable(HOSTILE),
    ),
    Grade("=ann|<b>", "a\\x1b.ipynb", "choose-the-tile", None, 2, "Not graded.", 7, "not graded"),
    Grade("ben", "b.ipynb", "", 0, 0, "The file is not a notebook.", 7, "unreadable"),
    Grade(
        "ben",
        "c.ipynb",
        "write-the-tiled-matmul",
        0,
        4,
        "C[3] is 17.5, should be 18.5",
        7,
        "result",
        2,
        "M=33, drawn with seed 9",
        True,
    ),
]


@pytest.fixture
def written(tmp_path):
    texts = {("a\\x1b.ipynb", "pad-the-tile"): TEXT, ("c.ipynb", "write-the-tiled-matmul"): "a\nb\nc"}
    write_reports(GRADES, tmp_path / "new", texts, make_printable(HOSTILE), PICTURES)
    return tmp_path / "new"


class Tags(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text, self.open = [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_points_are_summed_by_student():
    assert sum_points(GRADES) == {"=ann|<b>": (2, 6), "ben": (0, 4)}


def test_whom_nothing_is_graded_of_has_no_sum_that_looks_like_a_zero(tmp_path):
    rows = [Grade("cleo", "", id, None, 2, "Not fetched.", 7, "not graded") for id in exercise_ids("tiled-gemm")]
    write_reports(rows, tmp_path)
    (line,) = csv.DictReader((tmp_path / "gradebook.csv").open(encoding="utf-8", newline=""))
    assert (line["points"], line["out_of"], line["not_graded"]) == ("", "10", "5")
    assert "| cleo |  | 10 | 5 |" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "grades.json").read_text(encoding="utf-8"))["totals"]["cleo"]["points"] is None
    assert "<h1>cleo: not graded</h1>" in (tmp_path / "students" / "cleo.html").read_text(encoding="utf-8")


def test_junit_counts_what_failed_and_says_why(written):
    suites = {suite.get("name"): suite for suite in ElementTree.parse(written / "grades.xml").getroot()}
    ann = suites["=ann|<b>"]
    assert [ann.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert "<script>" in ann.find("testcase/failure").text
    assert ann.find("testcase/error").get("type") == "not graded"
    assert "not a notebook" in suites["ben"].find("testcase/failure").get("message")


def test_no_cell_of_a_table_is_a_formula_however_it_is_split(written):
    for name in ("grades.csv", "gradebook.csv"):
        text = (written / name).read_text(encoding="utf-8")
        for delimiter in ",;\t|":
            for row in csv.reader(io.StringIO(text), delimiter=delimiter):
                for cell in row:
                    for line in cell.splitlines():
                        assert not line.strip().startswith(("=", "+", "@", "-")), (delimiter, line)
    rows = list(csv.DictReader((written / "grades.csv").open(encoding="utf-8", newline="")))
    assert [row["points"] for row in rows] == ["2", "0", "", "0", "0"]
    book = {row["student"]: row for row in csv.DictReader((written / "gradebook.csv").open(encoding="utf-8"))}
    assert (book["'=ann|<b>"]["points"], book["'=ann|<b>"]["not_graded"], book["ben"]["write-the-tiled-matmul"]) == (
        "2",
        "1",
        "0",
    )


def test_the_gradebook_has_the_further_columns_of_the_roster(tmp_path):
    rows = [Grade(name, "a.ipynb", "put-the-barrier-back", 1, 2, "Late.", 7) for name in ("ann", "eve")]
    roster = {"ann": {"section": "B", "points": "9", "email": "=a@x"}}
    write_reports(rows, tmp_path, assessment=Assessment(students=roster))
    assert list(csv.reader((tmp_path / "gradebook.csv").open(encoding="utf-8", newline=""))) == [
        ["student", "section", "points", "email", "out_of", "not_graded", "put-the-barrier-back"],
        ["ann", "B", "1", "'=a@x", "2", "0", "1"],
        ["eve", "", "1", "", "2", "0", "1"],
    ]


def test_points_are_written_alike_in_every_report(tmp_path):
    """Points after a deduction, by hand, or of a teacher's course.json are floats."""
    rows = [
        Grade("ann", "a.ipynb", "put-the-barrier-back", 3.0, 4.0, "Late.", 7),
        Grade("ann", "a.ipynb", "pad-the-tile", 1.5, 4, "Late.", 7),
    ]
    for path in write_reports(rows, tmp_path, assessment=Assessment(assignment="hw")):
        text = path.read_text(encoding="utf-8")
        assert path.name == "grades.json" or ("3.0" not in text and "4.0" not in text), path
        assert "4.5" in text or path.name in ("grades.csv", "grades.xml")


def test_canvas_and_moodle_get_the_sums_of_whom_all_is_graded(tmp_path):
    rows = [
        Grade("ada", "a.ipynb", "put-the-barrier-back", 1.5, 2, "Late.", 7),
        Grade("ada", "a.ipynb", "pad-the-tile", 2, 2, "Solved.", 7),
        Grade("ben", "", "put-the-barrier-back", 0, 4, "Nothing was handed in.", 7),
        Grade("eve", "e.ipynb", "put-the-barrier-back", 2, 2, "Solved.", 7),
        Grade("eve", "e.ipynb", "pad-the-tile", None, 2, "Not graded.", 7),
        Grade("=mal", "m.ipynb", "put-the-barrier-back", 0, 4, "Wrong.", 7),
    ]
    write_reports(rows, tmp_path, assessment=Assessment(assignment="hw2"))
    lines = list(csv.reader((tmp_path / "canvas.csv").open(encoding="utf-8", newline="")))
    assert lines == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "hw2"],
        ["    Points Possible", "", "", "", "", "4"],
        ["ada", "", "", "ada", "", "3.5"],
        ["ben", "", "", "ben", "", "0"],
        ["'=mal", "", "", "'=mal", "", "0"],
    ]
    lines = list(csv.reader((tmp_path / "moodle.csv").open(encoding="utf-8", newline="")))
    assert lines == [["username", "hw2"], ["ada", "3.5"], ["ben", "0"], ["'=mal", "0"]]
    assert not {"canvas.csv", "moodle.csv"} & {path.name for path in write_reports(rows, tmp_path / "all")}


def test_json_holds_everything(written):
    loaded = json.loads((written / "grades.json").read_text(encoding="utf-8"))
    assert loaded["totals"]["ben"] == {"points": 0, "out_of": 4}
    assert [row["message"] for row in loaded["grades"]] == [row.message for row in GRADES]
    assert loaded["grades"][2]["points"] is None


def test_a_page_holds_our_elements_alone_and_their_text(written):
    page = Tags((written / "students" / file_name("=ann|<b>")).read_text(encoding="utf-8"))
    assert page.open == []
    assert {tag for tag, _ in page.found} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "section", "p", "pre", "mark"),
        *("figure", "img", "figcaption"),
    }
    known = {"class", "charset", "lang", "http-equiv", "content", "src", "alt"}
    assert all(set(attributes) <= known for _, attributes in page.found)
    assert "<script>alert(1)</script>" in page.text and 'x = "</pre>' in page.text


def test_what_an_earlier_run_wrote_and_this_one_does_not_is_gone_and_nothing_else(tmp_path):
    ann, eve = (Grade(name, "a.ipynb", "put-the-barrier-back", 1, 2, "Late.", 7) for name in ("ann", "Eve"))
    write_reports([eve, ann], tmp_path, assessment=Assessment(assignment="hw2"))
    kept = {"students/ann.html", "students/mine.html", "notes.csv", "grades.json", "gradebook.csv"}
    for name in ("students/mine.html", "notes.csv"):
        (tmp_path / name).write_text("mine")
    before = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    write_reports([ann], tmp_path)
    after = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert before - after == {f"students/{file_name('Eve')}", "canvas.csv", "moodle.csv"}
    assert kept <= after


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"totals": 1, "assignment": "a"}'])
def test_reports_are_written_over_data_that_cannot_be_read(tmp_path, content):
    (tmp_path / "grades.json").write_text(content)
    write_reports(GRADES, tmp_path)
    assert json.loads((tmp_path / "grades.json").read_text(encoding="utf-8"))["totals"]


def test_the_head_of_a_page_names_assignment_commit_and_deadline_where_they_are_known(tmp_path):
    rows = [Grade(name, "a.ipynb", "put-the-barrier-back", 1, 2, "Late.", 7) for name in ("ann", "eve")]
    collected = {
        "ann": Collected(
            "ann", commit="abcdef0123", committed="2026-11-20T13:05:00+00:00", left_out=("<b>.ipynb is a link",)
        ),
        "eve": Collected("eve", problem="Not fetched."),
    }
    deadline = Deadline(datetime(2026, 11, 30, 23, 59, tzinfo=UTC))
    write_reports(rows, tmp_path, assessment=Assessment(collected=collected, deadline=deadline, assignment="hw<2>"))
    ann, eve = (
        Tags((tmp_path / "students" / f"{name}.html").read_text(encoding="utf-8")).text for name in ("ann", "eve")
    )
    time = f"{collected['ann'].time:%Y-%m-%d %H:%M %z}"
    assert (
        f"Assignment hw<2>. Commit abcdef0 of {time}. Left out: <b>.ipynb is a link. Due 2026-11-30 23:59 +0000." in ann
    )
    assert "Assignment hw<2>. Due" in eve
    assert all("drawn anew" in text for text in (ann, eve, make_page("ann", rows, {}, {}, Assessment())))


def test_what_is_missing_for_one_reason_is_said_once():
    rows = [
        Grade("ann", "", id, 0, 2, "Nothing was handed in.", 7, "missing") for id in exercise_ids("first-gpu-matmul")
    ]
    rows += [Grade("ann", "a.ipynb", id, 0, 2, "Wrong.", 7, "result") for id in exercise_ids("tiled-gemm")[:2]]
    rows += [
        Grade("ann", "", id, n, 2, "Nothing was handed in.", 7, "missing", by_hand="Told me.")
        for n, id in enumerate(exercise_ids("roofline")[:2], 1)
    ]
    text = Tags(make_page("ann", rows, {}, {}, Assessment())).text
    assert text.count("Nothing was handed in.") == 3 and text.count("Wrong.") == 2
    numbers = ", ".join(exercise(id).number for id in exercise_ids("first-gpu-matmul"))
    assert f"{numbers}: 0 of 8 points" in text and "3 of 16 points" in text


def test_a_file_that_could_not_be_read_is_said_once_for_its_exercises():
    ids = ["", *exercise_ids("tiled-gemm")]
    rows = [Grade("ann", "a.ipynb", id, 0, 2, "a.ipynb: Cut off.", 7, "unreadable") for id in ids]
    text = Tags(make_page("ann", rows, {}, {}, Assessment())).text
    assert text.count("Cut off.") == 2  # of the file, and of its exercises


def test_a_picture_is_an_image_from_the_page_itself_and_told_in_words(written):
    text = (written / "students" / file_name("=ann|<b>")).read_text(encoding="utf-8")
    (image,) = [attributes for tag, attributes in Tags(text).found if tag == "img"]
    prefix, _, source = image["src"].partition(",")
    assert prefix == "data:image/svg+xml;base64"
    assert b64decode(source).decode() == PICTURES["a\\x1b.ipynb", "pad-the-tile"].svg
    assert image["alt"] == make_printable(HOSTILE)


def test_a_page_has_an_end_however_many_pictures_there_are():
    rows = [Grade("ann", "a.ipynb", id, 0, 2, "Wrong.", 7, "result") for id in exercise_ids("tiled-gemm")] * 3
    pictures = {("a.ipynb", row.exercise): Picture("<svg>" + "a" * 55_000, "words") for row in rows}
    text = make_page("ann", rows, {}, pictures, Assessment())
    assert 100_000 < len(text) < 200_000
    assert text.count("<img") == 2 and text.count("no room") == len(rows) - 2


def test_a_page_tells_no_drawn_size_and_no_seed(written):
    page = (written / "students" / "ben.html").read_text(encoding="utf-8")
    assert "drawn anew" in page and "<mark>   2 b</mark>" in page
    for secret in ("33", "seed", "17.5", "18.5", "ann", "<img"):
        assert secret not in page.replace(reports.page.STYLE, "")


def test_a_page_and_the_summary_tell_the_published_sizes_of_a_wrong_run(tmp_path):
    row = Grade("ann", "a.ipynb", "pad-the-tile", 0, 2, "C[3] is 1.", 7, "result", launch="M=33, K=5")
    write_reports([row, replace(row, exercise="choose-the-tile", launch="M=44", hidden=True)], tmp_path)
    page = (tmp_path / "students" / "ann.html").read_text(encoding="utf-8")
    assert "(run on M=33, K=5)" in page and "M=44" not in page
    assert "(run on M=33, K=5)" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_a_summary_is_text_in_tables(written):
    text = (written / "summary.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {5}
    plain = re.sub(r"&#\d+;", "", text)
    assert not re.search(r"[<>`\[\]@*_$!]|javascript:", plain.replace("|---|---|---|---|", ""))


def test_that_an_answer_is_the_book_s_is_told_to_the_teacher_alone(tmp_path):
    def written(folder, verbatim):
        rows = [Grade("ann", "a.ipynb", "put-the-barrier-back", 1, 2, "Wrong.", 7, "result", verbatim=verbatim)]
        return {path.name: path.read_bytes() for path in write_reports(rows, tmp_path / folder)}

    with_it, without = written("with", True), written("without", False)
    assert {name for name in with_it if with_it[name] != without[name]} == {"grades.csv", "grades.json"}


def test_the_teacher_s_words_stand_first_on_the_page_and_in_the_summary(tmp_path):
    row = Grade(
        "ann",
        "a.ipynb",
        "put-the-barrier-back",
        1,
        2,
        "C[3] is 17.5",
        7,
        "result",
        note="A note.",
        by_hand="Well tried.",
    )
    write_reports([row], tmp_path)
    page = Tags((tmp_path / "students" / "ann.html").read_text(encoding="utf-8")).text
    assert page.index("1 of 2 points") < page.index("Well tried.") < page.index("C[3] is") < page.index("A note.")
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").count("Well tried") == 1


def test_a_summary_can_be_read_as_a_file():
    assert (
        escape_markdown("C[0, 0] is -6.16894 (line 15, of A_tile)")
        == "C&#91;0, 0&#93; is -6.16894 (line 15, of A_tile)"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("- a", "+ a", "1. a", "12) a", "===", "---", "# a", "> a", "    a", "\ta", "* * *", "~~~", "|a|", "[a]: b"),
        *(
            "*a*",
            "_a_",
            "__a__",
            "a _b_",
            "~~a~~",
            "`a`",
            "[a](b)",
            "![a](b)",
            "<a>",
            "&lt;",
            "$a$",
            "@a",
            "#12",
            ":+1:",
            "\\(a\\)",
        ),
        *("http://e.org", "www.e.org", "WWW.e.org", "a@e.org", "mailto:a", "<!-- a", "a  \nb", "a\n===", "a\n- b"),
    ],
)
def test_markdown_is_text_in_a_summary_and_reads_as_it_was_written(text):
    rendered = Tags(
        mistune.create_markdown(escape=False, plugins=["url", "strikethrough", "table", "math"])(escape_markdown(text))
    )
    assert rendered.found == [("p", {})]
    assert rendered.text.strip() == " ".join(text.split())


def test_nothing_in_any_report_moves_a_terminal(written):
    for path in written.rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        assert not re.search("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text), path


def test_a_report_is_whole_at_any_time(written, monkeypatch):
    before = (written / "grades.csv").read_text(encoding="utf-8")
    monkeypatch.setattr(reports.os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_reports(GRADES[:1], written)
    assert (written / "grades.csv").read_text(encoding="utf-8") == before


def test_pages_of_different_students_have_different_names():
    names = [
        file_name(student) for student in ("ann", "Ann", "../ann", "..\\ann", "a/nn", "A" * 300, "A" * 301, "", ".")
    ]
    assert len(set(names)) == len(names) and not any("/" in name or name.startswith(".") for name in names)
    assert all(len(name) < 60 for name in names)
