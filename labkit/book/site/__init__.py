"""The book as static pages: chapters run once, their views alive without a kernel, their solutions left out."""

from collections.abc import Collection
from pathlib import Path

import nbformat

from labkit import places
from labkit.book.contents import read_toc
from labkit.book.site.chapters import STILLS, page, write_page
from labkit.book.site.executed import run_chapters
from labkit.book.site.race import race
from labkit.book.site.records import machines, records_page
from labkit.exercises.contents import book_contents

SOLUTIONS = places.folder("notebooks") / "solutions"
EXECUTED = "build/executed"  # in a checkout: what solved chapters showed when they ran


def write_sources(site: Path, pages: Path, only: Collection[str] = ()) -> None:
    """Write what Sphinx reads of the book to `site/chapters`: chapters, records, and what the first page shows.

    Parameters
    ----------
    site
        Folder of Sphinx's sources.
    pages
        Folder of the built pages, for the views' still pictures.
    only
        Slugs of chapters; all where empty.
    """
    notebooks = places.folder("notebooks")
    assert places.CHECKOUT, "the pages are built in a checkout"
    names = [chapter.name for chapter in book_contents().chapters if not only or chapter.slug in only]
    runs = run_chapters([SOLUTIONS / f"{name}.ipynb" for name in names], places.CHECKOUT / EXECUTED)
    folder = site / "chapters"
    folder.mkdir(exist_ok=True)
    for stale in set(folder.glob("*.ipynb")) - {folder / f"{name}.ipynb" for name in names}:
        stale.unlink()
    for name, run in zip(names, runs, strict=True):
        blank = nbformat.read(notebooks / f"{name}.ipynb", as_version=4)
        write_page(page(run, blank, pages / STILLS), folder / f"{name}.ipynb")
    (folder / "contents.md").write_text(_contents(notebooks, names), encoding="utf-8")
    (folder / "race.html").write_text(race(pages / STILLS), encoding="utf-8")
    for machine in machines():
        (folder / f"records-{machine}.md").write_text(records_page(machine), encoding="utf-8")


def _contents(notebooks, names):
    """Return the first page's lists of chapters, a part each, with what a reader will see, and of records' pages."""
    lines = []
    for part in read_toc(notebooks):
        chapters = [(book_contents().chapter(entry.slug), entry.sentence) for entry in part.chapters]
        chapters = [(chapter, seen) for chapter, seen in chapters if chapter and chapter.name in names]
        found = [f"chapters/{chapter.name}" for chapter, _ in chapters]
        if found:
            lines += [f"**{part.name}**", ""]
            lines += [f"- [](chapters/{chapter.name}.ipynb){_after_colon(seen)}" for chapter, seen in chapters]
            lines += ["", *_toctree(part.name, found)]
    return "\n".join([*lines, *_toctree("Records", [f"chapters/records-{machine}" for machine in machines()])])


def _after_colon(seen):
    return f": {seen.removeprefix('an appendix: ')}" if seen else ""


def _toctree(caption, pages):
    return ["```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```", ""]
