"""The book as static pages: chapters run once, their views alive without a kernel, their solutions left out."""

from pathlib import Path

import nbformat

from labkit import places
from labkit.book.contents import read_toc
from labkit.book.site.chapters import page, write_page
from labkit.book.site.executed import run_chapters
from labkit.book.site.race import race
from labkit.book.site.records import machines, records_page
from labkit.exercises.contents import book_contents

SOLUTIONS = places.folder("notebooks") / "solutions"
EXECUTED = "build/executed"  # in a checkout: what solved chapters showed when they ran


def write_sources(site: Path) -> None:
    """Write what Sphinx reads of the book to `site/chapters`: a notebook per chapter, and the contents by parts."""
    notebooks = places.folder("notebooks")
    assert places.CHECKOUT, "the pages are built in a checkout"
    names = [chapter.name for chapter in book_contents().chapters]
    runs = run_chapters([SOLUTIONS / f"{name}.ipynb" for name in names], places.CHECKOUT / EXECUTED)
    folder = site / "chapters"
    folder.mkdir(exist_ok=True)
    for stale in set(folder.glob("*.ipynb")) - {folder / f"{name}.ipynb" for name in names}:
        stale.unlink()
    for name, run in zip(names, runs, strict=True):
        write_page(page(run, nbformat.read(notebooks / f"{name}.ipynb", as_version=4)), folder / f"{name}.ipynb")
    (folder / "contents.md").write_text(_contents(notebooks), encoding="utf-8")
    (folder / "race.html").write_text(race(), encoding="utf-8")
    for machine in machines():
        (folder / f"records-{machine}.md").write_text(records_page(machine), encoding="utf-8")


def _contents(notebooks):
    """Return the first page's lists of chapters, a part each, and of the pages of records."""
    lines = []
    for part in read_toc(notebooks):
        chapters = [book_contents().chapter(entry.slug) for entry in part.chapters]
        lines += _toctree(part.name, [f"chapters/{chapter.name}" for chapter in chapters if chapter])
    return "\n".join([*lines, *_toctree("Records", [f"chapters/records-{machine}" for machine in machines()])])


def _toctree(caption, pages):
    return ["```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```", ""]
