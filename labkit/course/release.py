"""`labkit release`: the folder that an instructor makes a template repository of."""

from collections.abc import Iterator
from pathlib import Path
from string import Template

import nbformat

from labkit import places
from labkit.book.chapter import read_chapter
from labkit.book.contents import TOC, source_of, title_of
from labkit.course.handout import make_student_notebook
from labkit.course.manifest import NOTEBOOKS, CourseError, check_name, select_chapters
from labkit.exercises import exercise, exercise_ids
from labkit.exercises.contents import CONTENTS_FILE, book_contents, slug_of
from labkit.exercises.own import own_modules
from labkit.exercises.progress import WORK_LOG
from labkit.grading.course import FILE, Course

FOR_LEARNERS = "00-90"  # chapters from 91 on are for instructors
WORK_LOG_NOTE = f"""
This course keeps a work log: each check writes the exercise, the time and the outcome, and nothing of your answer, into
`{NOTEBOOKS}/{WORK_LOG}`. It is submitted with your notebooks. Your instructor reads it; it changes no points.
"""
EXAMPLE = Path(__file__).parent / "example"  # of a folder with an own exercise, for instructors
_TEMPLATE = Path(__file__).parent / "template"
_TEMPLATES = {
    "README.md": "README.md",
    "Makefile": "Makefile",
    "gitignore": ".gitignore",
    "gitattributes": ".gitattributes",
    "check.yml": ".github/workflows/check.yml",
}
_FROM_THE_BOOK = ("pyproject.toml", "constraints.txt", "environment.yml", "LICENSE")
_FOLDERS = ("labkit", "kernels")


def release(folder: Path, chapters: str = FOR_LEARNERS, assignment: str = "book", *, work_log: bool = False) -> Course:
    """Write a release into a folder that is new or empty but for `.git`.

    It holds blank chapters, labkit itself, and nothing of the solutions. The same book gives the same bytes.
    """
    if folder.exists() and not folder.is_dir():
        raise CourseError(f"{folder} is a file; name a new folder")
    if folder.is_dir() and any(path.name != ".git" for path in folder.iterdir()):
        raise CourseError(f"{folder} is not empty, and a release overwrites nothing; name a new folder")
    course, files = release_files(chapters, assignment, work_log=work_log)
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise CourseError(
            f"the release cannot be written to {folder}: {error.strerror}; name another folder"
        ) from error
    return course


def release_files(chapters: str, assignment: str, *, work_log: bool = False) -> tuple[Course, dict[str, bytes]]:
    """Return the course, and all files of its release by path."""
    book = places.CHECKOUT
    if not book or not (book / "notebooks" / TOC).exists():
        raise CourseError("a release is made from the book's sources; run this in a checkout of the book")
    sources = {chapter.name: source_of(chapter.slug) for chapter in book_contents().chapters}
    names = select_chapters(sources, chapters)
    points = {id: exercise(id).points for name in names for id in exercise_ids(slug_of(name))}
    course = Course(check_name(assignment), tuple(names), points, work_log)
    files = dict(_labkit_files(book))
    for name in names:
        notebook = make_student_notebook(read_chapter(sources[name]).blank, names)
        files[f"{NOTEBOOKS}/{name}.ipynb"] = (nbformat.writes(notebook) + "\n").encode()
    files[FILE] = course.to_json().encode()
    log = WORK_LOG_NOTE if work_log else ""
    texts = {"assignment": course.assignment, "chapters": _table(sources, course), "work_log": log}
    readme_values = {**texts, "out_of": course.out_of}
    for template, name in _TEMPLATES.items():
        text = (_TEMPLATE / template).read_text(encoding="utf-8")
        files[name] = (Template(text).substitute(readme_values) if name == "README.md" else text).encode()
    return course, files


def _labkit_files(book: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file of labkit itself, which holds checks, and no solutions.

    An instructor's own exercises become files of the labkit that students get.
    """
    for name in _FROM_THE_BOOK:
        yield name, (book / name).read_bytes()
    for folder in _FOLDERS:
        for path in sorted((book / folder).rglob("*")):
            parts = path.relative_to(book).parts
            is_generated = any(part.startswith(".") or part == "__pycache__" for part in parts)
            if path.is_file() and not is_generated and EXAMPLE not in path.parents:
                yield "/".join(parts), path.read_bytes()
    exercises = CONTENTS_FILE.parent.relative_to(book).as_posix()
    yield f"{exercises}/{CONTENTS_FILE.name}", book_contents().to_json().encode()  # which has the own chapters
    for path in own_modules():
        yield f"{exercises}/{path.name}", path.read_bytes()


def _table(sources, course):
    """Return the chapters with their titles and points, as rows of Markdown."""
    rows = []
    for name in course.chapters:
        title = f"{name[:2]} · {title_of(sources[name])}"
        points = sum(course.points[id] for id in exercise_ids(slug_of(name)))
        rows.append(f"| [{title}]({NOTEBOOKS}/{name}.ipynb) | {points or ''} |")
    return "\n".join(rows)
