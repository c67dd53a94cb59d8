"""An instructor adds an exercise to a course: a folder beside the book is proved, released, handed in and graded."""

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from classroom import git, labkit, save, warm

from labkit import places
from labkit.book.chapter import read_solutions
from labkit.course.leaks import find_leaks
from labkit.course.release import EXAMPLE
from labkit.grading.judging import Batch, Limits, run_batch
from labkit.grading.trusted import Task

pytestmark = [
    pytest.mark.skipif(places.CHECKOUT is None, reason="a release is made in a checkout"),
    pytest.mark.long,
]
ID, CHAPTER = "add-the-halves", "60-warm-up.ipynb"
STUB = "    ...\n"
SOLUTION = "    if i < y.size:\n        y[i] = x[i] + x[i + y.size]\n"
NEIGHBOURS = SOLUTION.replace("x[i] + x[i + y.size]", "x[2 * i] + x[2 * i + 1]")


def instructor(*arguments, status=0, **environment):
    """A command of this checkout's labkit, in a process of its own."""
    command = [sys.executable, "-m", "labkit.cli", *map(str, arguments)]
    known = {name: value for name, value in os.environ.items() if name != places.OWN_COURSE}
    environment = {name: str(value) for name, value in environment.items()}
    paths = {"PYTHONPATH": str(places.CHECKOUT)}
    done = subprocess.run(command, env=known | paths | environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def course(tmp_path):
    """The example of a course with an exercise of its own."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "my-course", ignore=shutil.ignore_patterns("__pycache__")))


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def hash_package():
    """Hash all that git tracks or might of the package and the book."""
    digest = hashlib.sha256()
    for folder in (places.PACKAGE, places.folder("notebooks")):
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()


def answer(body):
    return f"@cuda.jit\ndef add_halves(x, y):\n    i = cuda.grid(1)\n{body}"


def points_of(grades):
    with (grades / "gradebook.csv").open(encoding="utf-8", newline="") as file:
        return {row["student"]: (row["points"], row["not_graded"]) for row in csv.DictReader(file)}


def test_a_course_with_an_exercise_of_its_own_from_the_folder_to_the_grades(tmp_path):
    before, course, template = hash_package(), tmp_path / "my-course", tmp_path / "hw1"
    told = instructor("prove", course, "--new")
    assert "60.1 Add the halves" in told and "blank: refused, unfinished" in told
    assert "accepted with 20 seeds" in told and "No fault was found." in told
    assert "overwrites nothing" in instructor("prove", course, "--new", status=1)

    told = instructor("release", template, "--course", course, "--chapters", "warm-up", "--assignment", "hw1")
    assert "chapters 60; points: 2." in told
    assert json.loads((template / "course.json").read_text())["points"] == {ID: 2}
    released = {str(path.relative_to(template)): path.read_bytes() for path in template.rglob("*") if path.is_file()}
    assert not [*find_leaks(read_solutions(course / "source" / "warm-up.md"), released)]
    assert not [name for name in released if name.startswith(("labkit/course/example", "answers", "source"))]

    git(template, "init", "--quiet", "--initial-branch=main")
    git(template, "add", ".")
    git(template, "commit", "--quiet", "--message", "hw1")
    for student, body in (("ada", SOLUTION), ("bob", NEIGHBOURS)):
        git(tmp_path, "clone", "--quiet", "--bare", str(template), f"{student}.git")
        git(tmp_path, "clone", "--quiet", f"{student}.git", student)
        save(tmp_path / student / "notebooks" / CHAPTER, ID, answer(body))
        git(tmp_path / student, "commit", "--quiet", "--all", "--message", "answers")
        git(tmp_path / student, "push", "--quiet", "origin", "main")
    warm(tmp_path / "ada")
    assert "60.1 Add the halves: 2 of 2 points\nhw1: 2 of 2 points so far." in labkit(tmp_path / "ada", "check")

    (tmp_path / "roster.csv").write_text("student,repository\nada,ada.git\nbob,bob.git\n")
    instructor("collect", tmp_path / "roster.csv", "--out", tmp_path / "submissions")
    of = "--roster", tmp_path / "roster.csv", "--assignment", template / "course.json"
    without = instructor("grade", tmp_path / "submissions", *of, "--out", tmp_path / "grades", status=1)
    assert "names exercises that are not in this book: add-the-halves" in without
    instructor("grade", tmp_path / "submissions", *of, "--out", tmp_path / "grades", "--course", course)
    assert points_of(tmp_path / "grades") == {"ada": ("2", "0"), "bob": ("0", "0")}
    page = (tmp_path / "grades" / "students" / "bob.html").read_text(encoding="utf-8")
    assert "y came out as if neighbours were added" in page
    assert hash_package() == before

    oracle = course / "exercises" / "add_the_halves.py"  # a corrected exercise is judged anew
    change(oracle, "{1: add(x[:n], x[n:])}", "{1: add(x[::2], x[1::2])}")
    instructor("grade", tmp_path / "submissions", *of, "--out", tmp_path / "grades", LABKIT_COURSE=course)
    assert points_of(tmp_path / "grades") == {"ada": ("0", "0"), "bob": ("2", "0")}


def test_a_weak_check_is_found(course):
    file, answers = course / "exercises" / "add_the_halves.py", course / "answers" / "add_the_halves.py"
    change(file, "random_sizes=((range(1, 64),), (Above(128),)),", "random_sizes=(),")
    change(file, "        duties=(one_thread_per_element((n,), (BLOCK,)),),\n", "")
    change(file, 'Mistake("neighbours were added", lambda: {1: add(x[::2], x[1::2])})', TWO_MISTAKES)
    change(file, "EXERCISE = ", f'LEAK = """\n{SOLUTION}"""\nEXERCISE = ')
    change(answers, 'right("n of x\'s length"', 'right("the difference"')
    change(answers, "x[i] + x[i + x.size // 2]", "x[i] - x[i + x.size // 2]")
    change(answers, '"if i < y.size:", "if i >= 0:"', '"if i > y.size:", "if i >= 0:"')
    told = instructor("prove", course, status=1)
    for fault in (
        "random_sizes is empty",
        "students get the solution in add_the_halves.py",
        "the answer 'right up to 200 elements' is accepted",
        "the answer 'one thread adds all' is accepted",
        "the answer 'the difference' gets the reason 'result' and not 'solved'",
        "answer 'no guard': 'if i > y.size:' stands 0 times in the solution",
        "the answer 'neighbours' should get the cause 'neighbours were added', and gets none",
        "'x was read from its end' is the mistake of no answer",
        "'x was read from its end' comes out as a right answer does",
    ):
        assert f"FAULT: {fault}" in told or f"FAULT: the mistake {fault}" in told, f"{fault}\n{told}"


TWO_MISTAKES = (
    'Mistake("neighbours were added", lambda: {1: add(x[::2], x[::2])}), '
    'Mistake("x was read from its end", lambda: {1: add(x[:n], x[n:])})'
)


def test_a_blank_that_passes_and_a_solution_that_fails_are_found(course):
    source = course / "source" / "warm-up.md"
    change(
        source,
        "    ### BEGIN SOLUTION\n",
        "    ### BEGIN SOLUTION\n" + "".join(f"    #| {s.strip()}\n" for s in ("if i < y.size:",)),
    )
    change(source, "    #| if i < y.size:\n", "    #| if i < y.size:\n    #|     y[i] = x[i] + x[y.size + i]\n")
    change(source, "        y[i] = x[i] + x[i + y.size]\n", "        y[i] = x[i]\n")
    change(source, "[](task:add-the-halves)\n", "")
    told = instructor("prove", course, status=1)
    assert "FAULT: the blank exercise is accepted" in told
    assert "FAULT: the solution is refused with seed 1: result: y[0] is" in told
    assert "FAULT: source/warm-up.md does not give the task" in told


def test_a_mutant_that_the_check_accepts_is_shown_with_its_line(course):
    file = course / "exercises" / "add_the_halves.py"
    change(file, "sizes=((128,), (100,))", "sizes=((64,),)")
    change(file, "random_sizes=((range(1, 64),), (Above(128),)),", "random_sizes=(((64,),),),")
    change(file, "from labkit.checking import Above, ", "from labkit.checking import ")
    told = instructor("prove", course, status=1)
    assert "Accepted, though the results are wrong elsewhere" in told
    assert "line 4: i < y.size -> True" in told or "line 4: if i < y.size: -> if True:" in told, told


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("rng.standard_normal(2 * n, np.float32)", "rng.standard_normal(n / 2)", "line 13: TypeError"),
        ("add(x[:n], x[n - 1 : -1])", "add(x[1:n], x[n:-1])", "ValueError: the mistake 'the second half began one"),
        ("(Above(128),)", "Above(128)", "TypeError: 'Above' object is not iterable"),
    ],
)
def test_a_launch_that_cannot_be_made_is_told_with_its_line(course, old, new, told):
    change(course / "exercises" / "add_the_halves.py", old, new)
    said = instructor("prove", course, status=1)
    assert "FAULT: exercises/add_the_halves.py" in said and told in said and "Traceback" not in said


def rename_source(course):
    (course / "source" / "warm-up.md").rename(course / "source" / "roofline.md")


def take_an_exercise_of_the_book(course):
    change(course / "source" / "warm-up.md", ":exercise: add-the-halves", ":exercise: pad-the-tile")


def take_a_module_of_the_book(course):
    (course / "exercises" / "problems.py").write_text("")


def leave_the_exercise_out(course):
    (course / "exercises" / "add_the_halves.py").unlink()


def break_the_exercise(course):
    change(course / "exercises" / "add_the_halves.py", "BLOCK = 64", "BLOCK = 1 // 0")


def leave_the_check_out(course):
    change(course / "source" / "warm-up.md", ":tags: [check]\n:exercise: add-the-halves\n\n", "")


def write_a_name_in_capitals(course):
    (course / "source" / "warm-up.md").rename(course / "source" / "Warm Up.md")


def leave_a_chapter_empty(course):
    (course / "source" / "second.md").write_text("")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (rename_source, "source/roofline.md: labkit has a file of this name"),
        (take_an_exercise_of_the_book, "the book has an exercise pad-the-tile; give yours another name"),
        (take_a_module_of_the_book, "exercises/problems.py: labkit has a file of this name; give yours another one"),
        (leave_the_exercise_out, "there is no exercises/add_the_halves.py: write it"),
        (break_the_exercise, "is no exercise: ZeroDivisionError"),
        (leave_the_check_out, "warm-up.md: check cell of add-the-halves missing"),
        (write_a_name_in_capitals, "source/Warm Up.md: name it with lower-case letters and digits, such as warm-up.md"),
        (leave_a_chapter_empty, "second.md: it is empty; begin it with a title"),
        (shutil.rmtree, "has no chapter: write one to source/SLUG.md there"),
    ],
)
def test_a_folder_that_cannot_be_added_is_refused_in_a_sentence(course, tmp_path, fault, told):
    fault(course)
    said = instructor("release", tmp_path / "hw1", "--course", course, "--chapters", "warm-up", status=1)
    assert told in said and "Traceback" not in said
    assert not (tmp_path / "hw1").exists()


def test_a_worker_that_knows_nothing_of_the_folder_is_told_of_it():
    task = Task("ada.ipynb", "warm-up", {ID: answer(SOLUTION)})
    assert places.OWN_COURSE not in os.environ
    setups = {"warm-up": ["from labkit import cuda"]}
    for limits, is_known in ((Limits(1, own_course=str(EXAMPLE)), True), (Limits(1), False)):
        results = run_batch(Batch((task,)), setups, limits)
        assert [result.passed for result in results.values()] == [True, True, is_known]


HOSTILE = "from pathlib import Path\nPath({mark!r}).write_text('a file of a student was run')\n"


def test_an_exercise_in_a_student_s_folder_is_never_imported(course, tmp_path):
    mark, submissions = tmp_path / "mark", tmp_path / "submissions"
    instructor("release", tmp_path / "hw1", "--course", course, "--chapters", "warm-up")
    theirs = submissions / "mallory"
    shutil.copytree(tmp_path / "hw1" / "notebooks", theirs / "notebooks")
    hostile = HOSTILE.format(mark=str(mark))
    exercise = hostile + (course / "exercises" / "add_the_halves.py").read_text(encoding="utf-8")
    for folder in ("exercises", "labkit/exercises", "answers", "my-course/exercises", "notebooks"):
        for name in ("add_the_halves.py", "evil.py", "__init__.py", "sitecustomize.py", "conftest.py"):
            path = theirs / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(exercise, encoding="utf-8")
    (theirs / "source").mkdir()
    text = (course / "source" / "warm-up.md").read_text(encoding="utf-8")
    (theirs / "source" / "evil.md").write_text(text.replace(ID, "evil"), encoding="utf-8")
    (theirs / "course.json").write_text(json.dumps({"assignment": "hw1", "chapters": [], "points": {"evil": 9}}))
    path = theirs / "notebooks" / CHAPTER
    save(path, ID, f"from labkit.exercises import evil\n{answer(SOLUTION)}")
    notebook = nbformat.read(path, as_version=4)
    cell = nbformat.v4.new_code_cell(
        answer(SOLUTION), id="exercise-evil", metadata={"exercise": "evil", "tags": ["exercise"]}
    )
    notebook.cells.append(cell)
    notebook.metadata["labkit"] = {"chapter": "../../exercises/evil", "course": str(theirs)}
    nbformat.write(notebook, path)

    instructor("grade", submissions, "--course", course, "--out", tmp_path / "grades")
    rows = json.loads((tmp_path / "grades" / "grades.json").read_text(encoding="utf-8"))
    assert "evil" not in {row["exercise"] for row in rows["grades"]}
    assert not mark.exists()

    for named in ({"LABKIT_COURSE": theirs}, {"LABKIT_COURSE": submissions}):
        told = instructor("grade", submissions, "--out", tmp_path / "others", status=1, **named)
        assert "which students write, and its exercises would run here: move it out" in told
    assert not mark.exists()
