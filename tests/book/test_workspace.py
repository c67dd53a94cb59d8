import pytest

from labkit.book.workspace import copy_chapters


@pytest.fixture
def notebooks(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "00-start-here.ipynb").write_text("first edition", encoding="utf-8")
    return folder


def test_a_new_workspace_gets_every_chapter(notebooks, tmp_path):
    news = copy_chapters(tmp_path / "mine", notebooks)
    assert news == ["New: 00-start-here.ipynb"]
    assert (tmp_path / "mine" / "00-start-here.ipynb").read_text(encoding="utf-8") == "first edition"


def test_a_second_start_is_silent_and_leaves_work_alone(notebooks, tmp_path):
    mine = tmp_path / "mine" / "00-start-here.ipynb"
    copy_chapters(tmp_path / "mine", notebooks)
    mine.write_text("my work", encoding="utf-8")
    assert copy_chapters(tmp_path / "mine", notebooks) == []
    assert mine.read_text(encoding="utf-8") == "my work"


def test_a_newer_edition_replaces_only_an_untouched_copy(notebooks, tmp_path):
    copy_chapters(tmp_path / "mine", notebooks)
    (notebooks / "00-start-here.ipynb").write_text("second edition", encoding="utf-8")
    assert copy_chapters(tmp_path / "mine", notebooks) == ["Updated: 00-start-here.ipynb, which you had not changed"]
    assert (tmp_path / "mine" / "00-start-here.ipynb").read_text(encoding="utf-8") == "second edition"


def test_a_newer_edition_is_laid_beside_the_learners_work_once(notebooks, tmp_path):
    workspace = tmp_path / "mine"
    copy_chapters(workspace, notebooks)
    (workspace / "00-start-here.ipynb").write_text("my work", encoding="utf-8")
    (notebooks / "00-start-here.ipynb").write_text("second edition", encoding="utf-8")
    (news,) = copy_chapters(workspace, notebooks)
    assert "00-start-here (2).ipynb" in news
    assert (workspace / "00-start-here.ipynb").read_text(encoding="utf-8") == "my work"
    (workspace / "00-start-here (2).ipynb").write_text("more work", encoding="utf-8")
    assert copy_chapters(workspace, notebooks) == []
    (notebooks / "00-start-here.ipynb").write_text("third edition", encoding="utf-8")
    (news,) = copy_chapters(workspace, notebooks)
    assert "00-start-here (3).ipynb" in news
    assert (workspace / "00-start-here (2).ipynb").read_text(encoding="utf-8") == "more work"


def test_a_file_that_was_there_before_is_not_touched(notebooks, tmp_path):
    workspace = tmp_path / "mine"
    workspace.mkdir()
    (workspace / "00-start-here.ipynb").write_text("something of my own", encoding="utf-8")
    copy_chapters(workspace, notebooks)
    assert (workspace / "00-start-here.ipynb").read_text(encoding="utf-8") == "something of my own"


def test_a_chapter_that_the_learner_deleted_comes_back(notebooks, tmp_path):
    copy_chapters(tmp_path / "mine", notebooks)
    (tmp_path / "mine" / "00-start-here.ipynb").unlink()
    assert copy_chapters(tmp_path / "mine", notebooks) == ["New: 00-start-here.ipynb"]


@pytest.fixture
def renumbered(notebooks):
    """A newer edition, in which the chapter has another number."""

    def renumber():
        (notebooks / "00-start-here.ipynb").unlink()
        (notebooks / "01-start-here.ipynb").write_text("second edition", encoding="utf-8")

    return renumber


def test_an_untouched_chapter_takes_its_new_number(notebooks, renumbered, tmp_path):
    copy_chapters(tmp_path / "mine", notebooks)
    renumbered()
    (news,) = copy_chapters(tmp_path / "mine", notebooks)
    assert news == "Updated: 01-start-here.ipynb, which was 00-start-here.ipynb and you had not changed"
    assert [path.name for path in (tmp_path / "mine").glob("*.ipynb")] == ["01-start-here.ipynb"]
    assert copy_chapters(tmp_path / "mine", notebooks) == []


def test_work_stays_under_its_old_number(notebooks, renumbered, tmp_path):
    copy_chapters(tmp_path / "mine", notebooks)
    (tmp_path / "mine" / "00-start-here.ipynb").write_text("my work", encoding="utf-8")
    renumbered()
    (news,) = copy_chapters(tmp_path / "mine", notebooks)
    assert news == "00-start-here.ipynb has a newer edition; yours is untouched, the new one is 01-start-here.ipynb"
    assert (tmp_path / "mine" / "00-start-here.ipynb").read_text(encoding="utf-8") == "my work"
    assert (tmp_path / "mine" / "01-start-here.ipynb").read_text(encoding="utf-8") == "second edition"
    assert copy_chapters(tmp_path / "mine", notebooks) == []
