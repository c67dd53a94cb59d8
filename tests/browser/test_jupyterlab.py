"""The book in a real JupyterLab: what a learner does, in headless Chromium."""

import nbformat
import pytest
from changes import changed_files, chapters_in, slug
from sampling import WHOLE

from labkit import places
from labkit.bench import _lab
from labkit.book.workspace import copy_chapters
from labkit.exercises.contents import book_contents

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(600), pytest.mark.long]

CHAPTERS = sorted(
    path.name
    for path in places.folder("notebooks").glob("[0-9][0-9]-*.ipynb")
    if any(cell.cell_type == "code" for cell in nbformat.read(path, as_version=4).cells)
)
MOST_VIEWS = {"register-tiles"}  # beside "tiled-gemm", which a test below runs


def chosen():
    """A chapter of many views, and those that changed since `main`; all where the views did."""
    changed = changed_files()
    if WHOLE or any(path.startswith("labkit/views/") for path in changed):
        return CHAPTERS
    return [name for name in CHAPTERS if slug(name) in MOST_VIEWS | chapters_in(changed)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with _lab.serve(tmp_path_factory.mktemp("workspace")) as served:
        yield served


@pytest.fixture
def lab(server):
    with _lab.browse(*server) as opened:
        yield opened
        opened.stop_kernels()


def ran_clean(lab):
    """Whether every code cell of the open notebook ran, with nothing to complain of."""
    cells = [cell for cell in lab.cells() if cell["kind"] == "code"]
    assert cells
    assert [cell["source"] for cell in cells if cell["count"] is None] == []
    assert [cell["error"] for cell in cells if cell["error"]] == []
    assert lab.complaints == []
    return True


@pytest.mark.parametrize("chapter", chosen())
def test_a_chapter_runs_from_top_to_bottom(lab, chapter):
    lab.open(chapter)
    lab.run_all()
    assert ran_clean(lab)
    assert lab.page.get_by_text("Would you like to").count() == 0, "JupyterLab's news prompt is in the way"
    lab.save()


def test_an_edited_kernel_follows_the_slider(lab):
    lab.open(f"{book_contents().chapter('tiled-gemm').name}.ipynb")
    lab.run_all()
    assert ran_clean(lab)
    kernel = next(cell for cell in lab.cells() if "def my_tiled(" in cell["source"])
    playground = next(cell["id"] for cell in lab.cells() if "playground(my_tiled" in cell["source"])
    before = lab.picture(playground)
    assert "errors found." not in before["text"]

    barrier = kernel["source"].rindex("        cuda.syncthreads()\n")
    lab.edit(kernel["id"], kernel["source"][:barrier] + kernel["source"][barrier:].partition("\n")[2])
    lab.slide(playground, "TILE", 7)
    after = lab.picture(playground)
    assert after["live"]
    assert "TILE = 16" in after["text"]
    assert "errors found." in after["text"], "the simulator ran the kernel as it was before the edit"
    assert after["canvases"] != before["canvases"]
    assert lab.complaints == []


def test_a_reopened_chapter_still_shows_its_views(server):
    """One that a test above has run, or this one."""
    chapter = next(name for name in CHAPTERS if slug(name) == "register-tiles")
    with _lab.browse(*server) as lab:
        lab.open(chapter)
        if not lab.views():
            lab.run_all()
            lab.save()
        views = lab.views()
        assert views
        lab.stop_kernels()
    with _lab.browse(*server) as lab:
        lab.open(chapter)
        for cell in views:
            picture = lab.picture(cell)
            assert not picture["live"]
            assert picture["text"]
            assert all(picture["canvases"]), f"a canvas of cell {cell} is blank"
            assert not lab.cell(cell).get_by_text("Error displaying widget").is_visible()
        lab.stop_kernels()


QUESTION = "from labkit.views import predict\n\nguess = predict('How many?', unit='loads')\nguess"


def test_a_guess_kept_with_enter_is_compared(lab):
    """JupyterLab's own keys do not take it away."""
    lab.open(f"{book_contents().chapter('first-gpu-matmul').name}.ipynb")
    question, comparison = [cell["id"] for cell in lab.cells() if cell["kind"] == "code"][:2]
    lab.edit(question, QUESTION)
    cell = lab.cell(question)
    guess = cell.locator("[data-labkit-live] input[type=number]")
    guess.fill("-3")
    guess.press("Enter")
    assert cell.get_by_text("Kept").count() == 0  # nobody loads less than nothing
    guess.fill("32")
    guess.press("Enter")
    cell.get_by_text("Kept: 32 loads").wait_for()
    lab.edit(comparison, "guess.compare(4)")
    lab.cell(comparison).get_by_text("your guess was 8 times too high").first.wait_for()
    assert lab.complaints == []


def answer(lab, slug, *exercises):
    """Open a chapter, and run its setup, solutions of exercises and their checks."""
    name = book_contents().chapter(slug).name
    solved = nbformat.read(places.folder("notebooks") / "solutions" / f"{name}.ipynb", as_version=4)
    sources = {cell.id: cell.source for cell in solved.cells}
    lab.open(f"{name}.ipynb")
    lab.edit(f"{slug}-code-001", sources[f"{slug}-code-001"])
    for id in exercises:
        for cell in (f"exercise-{id}", f"check-{id}"):
            lab.edit(cell, sources[cell])
        lab.cell(f"check-{id}").get_by_text("solved").first.wait_for()
    lab.stop_kernels()


def shown_progress(lab, notebook):
    """The sentence on progress in a copy of the first chapter, run in a new kernel."""
    lab.open(notebook)
    setup, cell = (next(each for each in lab.cells() if word in each["source"]) for word in ("import", "progress()"))
    for each in (setup, cell):
        lab.edit(each["id"], each["source"])
    sentence = lab.cell(cell["id"]).get_by_text("exercises solved").first
    sentence.wait_for()
    said = sentence.inner_text()
    lab.save()
    lab.stop_kernels()
    return said


def test_progress_outlives_restarts_and_newer_editions(tmp_path):
    workspace, newer = tmp_path / "mine", tmp_path / "newer"
    first = f"{book_contents().chapters[0].name}.ipynb"
    with _lab.serve(workspace) as served, _lab.browse(*served) as lab:
        answer(lab, "first-gpu-matmul", "write-saxpy", "rows-and-columns")
        assert shown_progress(lab, first).startswith("2 of ")
        newer.mkdir()
        text = (places.folder("notebooks") / first).read_text(encoding="utf-8")
        (newer / first).write_text(text.replace("In a circle", "Now in a circle"), encoding="utf-8")
        assert "newer edition" in copy_chapters(workspace, newer)[0]
        assert shown_progress(lab, first.replace(".ipynb", " (2).ipynb")).startswith("2 of ")


TRIED = """import numpy as np
from labkit.gemm.fp32 import s03_tiled
from labkit.views import playground


def setup(TILE):
    A = np.ones((16, 16), np.float32)
    return (16 // TILE, 16 // TILE), (TILE, TILE), A, A, A * 0


playground(s03_tiled.tiled, setup, TILE=[4, 8])"""


def test_a_slider_stays_on_the_screen_while_its_picture_is_scrolled(lab):
    """JupyterLab's boxes around an output do not scroll it away."""
    lab.open(f"{book_contents().chapter('first-gpu-matmul').name}.ipynb")
    code = next(cell["id"] for cell in lab.cells() if cell["kind"] == "code")
    lab.edit(code, TRIED)
    live = lab.cell(code).locator("[data-labkit-live]")
    picture = live.locator("canvas").first
    picture.wait_for()
    picture.evaluate("canvas => canvas.scrollIntoView({block: 'start'})")
    lab.page.wait_for_timeout(300)
    top = lab.page.locator(".jp-WindowedPanel-outer").first.bounding_box()["y"]
    place = live.locator(".sliders").first.bounding_box()
    assert abs(place["y"] - top) < 2
