"""The README's table of chapters, and its links to them: written from the table of contents and the sources."""

import re
from pathlib import Path

from labkit.book.contents import read_toc, source, title_of
from labkit.exercises.contents import Contents

_HEAD = "| | chapter | you will see |\n|---|---|---|\n"
_TABLE = re.compile(re.escape(_HEAD) + r"(?:\|.*\n)*")
_LINK = re.compile(r"(\[[Cc]hapter) \d\d\]\(notebooks/\d\d-([\w-]+)\.ipynb\)")


def update_readme(readme: str, notebooks: Path, book: Contents) -> str:
    """Return the README's text with the rows and links of this book's chapters."""
    sentences = {entry.slug: entry.sentence for part in read_toc(notebooks) for entry in part.chapters}
    rows = [
        f"| {chapter.number} | {title_of(source(notebooks, chapter.slug))} | {sentences[chapter.slug]} |\n"
        for chapter in book.chapters
    ]

    def link(match):
        chapter = book.chapter(match[2])
        return f"{match[1]} {chapter.number}](notebooks/{chapter.name}.ipynb)" if chapter else match[0]

    return _LINK.sub(link, _TABLE.sub(lambda _: _HEAD + "".join(rows), readme))
