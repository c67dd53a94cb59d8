"""What students get: blank chapters, labkit, no solutions; the same bytes each time; nothing overwritten."""

import json
import re
import subprocess
import sys

import nbformat
import pytest
import yaml
from typer.testing import CliRunner

from labkit import cli, places
from labkit.book.chapter import read_chapter, read_solutions
from labkit.course.leaks import TELLING, find_leaks, read_text
from labkit.course.manifest import CourseError, select_chapters
from labkit.course.release import release_files
from labkit.exercises import exercise, exercise_ids
from labkit.exercises.contents import book_contents
from labkit.grading.course import FILE, Course

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="a release is made in a checkout")
SOURCES = sorted(places.folder("notebooks").glob("source/*.md"))
TILED = book_contents().chapter("tiled-gemm").name


@pytest.fixture(scope="module")
def whole():
    return release_files("00-90", "book")[1]


def test_no_solution_stands_in_any_released_file(whole):
    solutions = [found for path in SOURCES for found in read_solutions(path)]
    assert sum(len(" ".join(text.split())) > TELLING for _, text in solutions) > 40
    assert not [*find_leaks(solutions, whole)]


def test_a_solution_in_a_released_file_is_found(whole):
    path = next(path for path in SOURCES if path.stem == "tiled-gemm")
    files = {"a.py": b"\n\n".join(text.encode() for _, text in read_solutions(path)), "b.py": b""}
    assert ("write-the-tiled-matmul", "a.py") in find_leaks(read_solutions(path), files)


def test_exercises_are_blank_and_their_solutions_are_not_explained(whole):
    for path in SOURCES:
        chapter = read_chapter(path)
        content = whole.get(f"notebooks/{chapter.name}.ipynb")
        if content is None:
            assert chapter.name >= "91"
            continue
        blank, solved = ({c.id: c.source for c in book.cells} for book in (chapter.blank, chapter.solved))
        for cell in nbformat.reads(content.decode(), as_version=4).cells:
            assert "<summary>Solution" not in cell.source
            if cell.cell_type == "code":
                assert cell.source == blank[cell.id]
            if cell.id.startswith("exercise-"):
                assert cell.source != solved[cell.id]


def test_a_release_carries_neither_sources_nor_solutions_nor_tests(whole):
    assert not [name for name in whole if "solutions/" in name or "source/" in name or name.startswith("tests/")]
    assert not [name for name in whole if "__pycache__" in name or name.endswith(".pyc")]
    assert {"labkit/cli.py", "pyproject.toml", "constraints.txt", "course.json", ".gitignore"} <= {*whole}


def test_git_tracks_what_is_released_and_what_a_student_adds_and_nothing_that_tools_make(whole, tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitignore").write_bytes(whole[".gitignore"])
    work = [*whole, "notebooks/my-notes.ipynb", "notebooks/data/points.csv", "notebooks/helper.py"]
    made = [".venv/pyvenv.cfg", "labkit/__pycache__/cli.pyc", "notebooks/.ipynb_checkpoints/00.ipynb"]
    made += ["notebooks/.DS_Store", "grades/gradebook.csv"]
    asked = subprocess.run(
        ["git", "check-ignore", "--stdin"], cwd=tmp_path, input="\n".join(work + made), capture_output=True, text=True
    )
    assert asked.stdout.splitlines() == made


def test_the_same_release_twice_is_the_same_bytes(whole):
    assert release_files("00-90", "book")[1] == whole


def test_cells_carry_the_metadata_of_nbgrader(whole):
    _, files = release_files("tiled-gemm", "hw2")
    found = {c.id: c.metadata for c in nbformat.reads(files[f"notebooks/{TILED}.ipynb"].decode(), 4).cells}
    assert found["exercise-pad-the-tile"]["nbgrader"] == {
        "schema_version": 3,
        "grade_id": "exercise-pad-the-tile",
        "solution": True,
        "grade": False,
        "locked": False,
        "task": False,
    }
    check = found["check-pad-the-tile"]
    assert check["nbgrader"]["points"] == exercise("pad-the-tile").points
    assert check["nbgrader"]["grade"] and check["nbgrader"]["locked"] and not check["nbgrader"]["solution"]
    assert not check["editable"] and not found["exercise-pad-the-tile"]["deletable"]


def test_links_to_chapters_that_are_not_released_become_text():
    _, files = release_files("first-gpu-matmul,tiled-gemm", "hw2")
    text = " ".join(read_text(name := f"notebooks/{TILED}.ipynb", files[name]).split())
    assert re.search(r"In \[chapter \d\d\]\(\d\d-first-gpu-matmul\.ipynb\)", text)
    assert re.search(r"In chapter \d\d, threads share", text) and "start-here.ipynb" not in text


def test_the_course_names_its_chapters_and_points(tmp_path):
    course, files = release_files("tiled-gemm", "hw2")
    assert course.chapters == (TILED,)
    assert course.points == {id: exercise(id).points for id in exercise_ids("tiled-gemm")}
    (tmp_path / "course.json").write_bytes(files["course.json"])
    assert Course.read(tmp_path / FILE) == course
    points = sum(course.points.values())
    assert "# hw2" in files["README.md"].decode() and f"{points} points" in files["README.md"].decode()


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [("02", "02"), ("02-04", "02 03 04"), ("00,03-04", "00 03 04"), ("04,03", "03 04"), ("03-03, 04", "03 04")],
)
def test_chapters_are_chosen_by_numbers_and_spans(selection, wanted):
    names = [f"{number:02d}-x" for number in range(6)]
    assert [name[:2] for name in select_chapters(names, selection)] == wanted.split()


def test_students_are_told_of_a_work_log():
    course, files = release_files("tiled-gemm", "hw2", work_log=True)
    assert course.work_log and json.loads(files["course.json"])["work_log"] is True
    assert "notebooks/work-log.jsonl" in files["README.md"].decode()
    assert b"work log" not in release_files("tiled-gemm", "hw2")[1]["README.md"]


def test_chapters_are_chosen_by_name_too():
    names = ["02-first-gpu-matmul", "03-tiled-gemm", "04-roofline"]
    assert select_chapters(names, "roofline, 02") == ["02-first-gpu-matmul", "04-roofline"]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        ("", "names no chapters"),
        ("3", "names no chapters"),
        ("X", "names no chapters"),
        ("y", "no chapter y"),
        ("77", "no chapter 77"),
        ("04-02", "no ch"),
    ],
)
def test_chapters_that_are_none_are_told_so(selection, said):
    with pytest.raises(CourseError, match=said):
        select_chapters(["02-x", "03-x"], selection)


@pytest.mark.parametrize("assignment", ["", "../x", "a b", "x\n", "-x"])
def test_an_assignment_has_a_plain_name(assignment):
    with pytest.raises(CourseError, match="cannot name an assignment"):
        release_files("tiled-gemm", assignment)


def invoke(*arguments):
    return CliRunner().invoke(cli.app, [*map(str, arguments)])


def test_a_release_overwrites_nothing(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    result = invoke("release", tmp_path, "--chapters", "00")
    assert result.exit_code == 1
    assert "overwrites nothing" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert "is a file" in invoke("release", tmp_path / "mine.txt").output


def test_a_release_goes_into_an_empty_clone(tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    said = invoke("release", tmp_path, "--chapters", "start-here,tiled-gemm", "--assignment", "hw0").output
    points = sum(exercise(id).points for slug in ("start-here", "tiled-gemm") for id in exercise_ids(slug))
    assert f"points: {points}." in said
    assert json.loads((tmp_path / "course.json").read_text())["assignment"] == "hw0"


def test_the_students_workflow_runs_what_is_there(whole):
    (job,) = yaml.safe_load(whole[".github/workflows/check.yml"])["jobs"].values()
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    assert any("labkit check" in script for script in scripts)
    for step in job["steps"]:
        assert re.search(r"@[0-9a-f]{40}$", step.get("uses", "@" + "0" * 40))


def test_outside_of_a_release_there_is_nothing_to_check():
    for command in ("check", "submit"):
        result = invoke(command)
        assert result.exit_code == 1
        assert "this folder is not a release" in result.output


def test_the_progress_in_a_release_is_that_of_its_chapters(tmp_path):
    for name, content in release_files("03", "hw1")[1].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    show = "from labkit.book import progress; print(progress()._repr_html_())"
    shown = subprocess.run([sys.executable, "-c", show], cwd=tmp_path, capture_output=True, text=True)
    count = len(exercise_ids("tiled-gemm"))
    assert f"0 of {count} exercises solved" in shown.stdout, shown.stderr
    assert f'href="{TILED}.ipynb">03 · ' in shown.stdout and "04 · " not in shown.stdout
