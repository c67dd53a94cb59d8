"""The book in a real JupyterLab: what a learner does, in headless Chromium."""

import pytest

from labkit import places
from labkit.bench import _lab
from labkit.exercises.contents import book_contents

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(600), pytest.mark.long]

CHAPTERS = sorted(path.name for path in places.folder("notebooks").glob("[0-9][0-9]-*.ipynb"))


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


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_runs_from_top_to_bottom(lab, chapter):
    lab.open(chapter)
    lab.run_all()
    assert ran_clean(lab)
    assert lab.page.get_by_text("Would you like to").count() == 0, "JupyterLab's news prompt is in the way"


def test_an_edited_kernel_follows_the_slider(lab):
    lab.open(f"{book_contents().chapter('tiled-gemm').name}.ipynb")
    lab.run_all()
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
    with _lab.browse(*server) as lab:
        lab.open(f"{book_contents().chapter('tiled-gemm').name}.ipynb")
        lab.run_all()
        views = lab.views()
        assert views
        lab.save()
        lab.stop_kernels()
    with _lab.browse(*server) as lab:
        lab.open(f"{book_contents().chapter('tiled-gemm').name}.ipynb")
        for cell in views:
            picture = lab.picture(cell)
            assert not picture["live"]
            assert picture["text"]
            assert all(picture["canvases"]), f"a canvas of cell {cell} is blank"
            assert not lab.cell(cell).get_by_text("Error displaying widget").is_visible()
        lab.stop_kernels()
