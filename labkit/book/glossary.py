"""The glossary: the words that chapters list at their ends, and links to them where later chapters use them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labkit.book.contents import read_contents, source
from labkit.exercises.contents import Contents

SLUG = "glossary"
PLACE = "[](glossary:words)"  # the line of its source that its words take
_ENTRY = re.compile(r"^\| \*\*(.+?)\*\* \| (.+?) \|$", re.M)
_WORDS = re.compile(r"^### Words\n(.*?)(?=^#|^\*\*|\Z)", re.M | re.S)
# Code, formulas, links, titles of folds (HTML, in which a link stays as it is written), other HTML, headings, rows of
# tables, and words that are being defined.
_KEPT = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$|!?\[[^\]\n]*\]\([^)\n]*\)|<summary>.*?</summary>|<[^>\n]*>|^[#|].*$"
    r"|\*\*.*?\*\*",
    re.M | re.S,
)


# Listed, and not linked: words on every page, and words that mean something else as often.
_EVERY_PAGE = (
    "kernel thread block grid warp lane launch host device guard trace register barrier tile sm flop attention"
)
_OTHER_SENSES = (
    "issue hit miss fold spread overlap pass page effective static dynamic plan stain bin vector handle value query "
    "key mask group groups stream wave hopper transposed stage offset head plane layout padding ring"
)
_NOT_LINKED = {*_EVERY_PAGE.split(), *_OTHER_SENSES.split(), "constant memory"}


@dataclass(frozen=True)
class Word:
    """A word of the glossary, or several of one meaning; what they mean, and the chapters that list them, by slug."""

    word: str
    meaning: str
    chapters: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The words by themselves: "hit, miss" is two."""
        return self.word.split(", ")

    @property
    def anchor(self) -> str:
        """The anchor of its heading in the glossary's notebook and page."""
        return re.sub(r"[^\w-]", "", self.word.lower().replace(" ", "-"))


@cache
def glossary(notebooks: Path) -> tuple[Word, ...]:
    """Return the words of all chapters by alphabet; of several meanings the first chapter's stands."""
    found: dict[str, Word] = {}
    for chapter in read_contents(notebooks).chapters:
        for section in _WORDS.findall(source(notebooks, chapter.slug).read_text(encoding="utf-8")):
            for word, meaning in _ENTRY.findall(section.replace("**, **", ", ")):
                known = found.get(word.lower(), Word(word, meaning, ()))
                found[word.lower()] = Word(known.word, known.meaning, (*known.chapters, chapter.slug))
    return tuple(sorted(found.values(), key=lambda each: each.word.lower()))


def list_words(words: Iterable[Word]) -> str:
    """Return the glossary's text: a heading per word, its meaning, and the chapters that list it."""
    sections = []
    for each in words:
        where = ", ".join(f"[{{}}](chapter:{slug})" for slug in each.chapters)
        sections.append(f"## {each.word}\n\n{each.meaning} ({where})")
    return "\n\n".join(sections)


def link_words(text: str, words: Iterable[Word], page: str, seen: set[Word]) -> str:
    """Return a cell's text with the first use of each word linked to the glossary, its meaning as the link's title.

    Parameters
    ----------
    page
        The name of the glossary's notebook.
    seen
        Words that the chapter has linked; those of this text are added.
    """
    by_name = {name.lower(): each for each in words for name in each.names if name.lower() not in _NOT_LINKED}
    if not by_name:
        return text
    names = "|".join(sorted(map(re.escape, by_name), key=len, reverse=True))
    uses = re.compile(rf"(?<![\w-])({names})s?(?![\w-])", re.I)

    def link(match):
        each = by_name[match[1].lower()]
        if each in seen:
            return match[0]
        seen.add(each)
        title = re.sub(r"[`*]", "", each.meaning).replace('"', "'")
        return f'[{match[0]}]({page}.ipynb#{each.anchor} "{title}")'

    parts, start = [], 0
    for kept in _KEPT.finditer(text):
        parts += [uses.sub(link, text[start : kept.start()]), kept[0]]
        start = kept.end()
    return "".join([*parts, uses.sub(link, text[start:])])


def earlier_words(words: Iterable[Word], slug: str, book: Contents) -> list[Word]:
    """Return the words that chapters before this one list, and it does not."""
    slugs = [chapter.slug for chapter in book.chapters]
    before = set(slugs[: slugs.index(slug)])
    return [each for each in words if slug not in each.chapters and before & set(each.chapters)]
