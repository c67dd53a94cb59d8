"""What tests of whole courses share: git, the labkit of a release, and notebooks as JupyterLab saves them."""

import shutil
import subprocess
import sys

import nbformat

from labkit import places
from labkit.book.chapter import exercise_cell_id


def git(folder, *arguments):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def labkit(folder, *arguments):
    """A command of the labkit that stands in this folder, in a process of its own."""
    command = [sys.executable, "-m", "labkit", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def warm(release):
    """Give a release what Python and numba have compiled of the book's own labkit, which is the same: half a minute."""
    copies = {path.relative_to(release / "labkit"): path for path in (release / "labkit").rglob("*.py")}
    for name, copy in copies.items():
        if (places.PACKAGE / name).exists():  # it is no exercise of the instructor's own
            shutil.copystat(places.PACKAGE / name, copy)
    for cache in places.PACKAGE.rglob("__pycache__"):
        if (folder := release / "labkit" / cache.relative_to(places.PACKAGE)).parent.is_dir():
            shutil.copytree(cache, folder)


def save(path, exercise, text):
    """Write the notebook as JupyterLab saves it after a cell was written and run."""
    notebook = nbformat.read(path, as_version=4)
    cell = next(cell for cell in notebook.cells if cell.id == exercise_cell_id(exercise))
    cell.source, cell.execution_count = text, 7
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="tried\n")]
    notebook.metadata["language_info"] |= {"version": "3.12.1", "mimetype": "text/x-python"}
    nbformat.write(notebook, path)
