"""What a student is sent, in headless Chromium: the page, light and dark, narrow and wide; feedback in JupyterLab."""

from pathlib import Path
from zipfile import ZipFile

import axe_playwright_python
import pytest
from handed_in import SAXPY, hand_in, solutions

from labkit.bench import _lab
from labkit.grading.feedback import FILE
from labkit.grading.grade import grade

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(600), pytest.mark.long]
SLUG = "first-gpu-matmul"
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
WRONG = "+ (-y[i] if i == 356 else y[i])"  # thread 100 of block 2


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The reports on one notebook: a wrong element, a syntax error, wrong elements without a pattern, a cause."""
    folder = tmp_path_factory.mktemp("graded")
    life = solutions(SLUG)["the-game-of-life"].replace("living == 3", "living == 4")
    answers = {"e1": SAXPY.replace("+ y[i]", WRONG), "e3": "def (", "e4": life}
    hand_in(folder / "in" / "ann" / "02.ipynb", SLUG, **answers)
    grade([folder / "in"], folder / "out", seed=7)
    return folder / "out"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.sample(2)
@pytest.mark.parametrize("width", [320, 1200])
def test_a_page_fits_its_screen_and_can_be_read(graded, scheme, width):
    from playwright.sync_api import sync_playwright

    complaints = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_lab.find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.on("console", lambda said: complaints.append(said.text))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or complaints.append(asked.url))
        page.goto((graded / "students" / "ann.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
        drawn = page.evaluate("[...document.images].map(one => one.complete && one.naturalWidth > 200)")
        assert drawn == [True, True]
        pattern = page.locator("pre.pattern")
        assert pattern.inner_text().count("\n") == 11
        assert pattern.evaluate("pre => pre.scrollWidth <= pre.clientWidth")
        assert page.get_by_text("The frame marks out[356], of thread 100 of block 2.").is_visible()
        page.evaluate(AXE)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
        browser.close()
    assert complaints == []


def test_feedback_is_read_in_jupyterlab(graded, tmp_path):
    with ZipFile(graded / FILE) as archive:
        archive.extractall(tmp_path)
    with _lab.serve(tmp_path / "work") as served, _lab.browse(*served) as lab:
        (tmp_path / "ann" / "02.ipynb").rename(tmp_path / "work" / "02.ipynb")
        lab.open("02.ipynb")
        verdict = lab.cell(next(cell["id"] for cell in lab.cells() if "game of life&#58;" in cell["source"]))
        verdict.locator("strong").wait_for()
        assert verdict.locator("strong").inner_text() == "02.4 The game of life: 0 of 3 points"
        assert verdict.locator("pre").inner_text().strip().count("\n") == 11
        assert verdict.get_by_text("# wrong, . right, + both; each sign is 2 x 2 elements").is_visible()
        assert lab.complaints == []  # before the kernel stops, which may still be asked for the state of its debugger
        lab.stop_kernels()
