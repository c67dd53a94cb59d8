"""The glossary has every word that chapters list, and links lead to it from where later chapters use them."""

import re

import nbformat
import pytest

from labkit import places
from labkit.book.chapter import read_chapter
from labkit.book.contents import source
from labkit.book.glossary import SLUG, Word, earlier_words, glossary, link_words
from labkit.exercises.contents import book_contents

NOTEBOOKS = places.folder("notebooks")
WORDS = glossary(NOTEBOOKS)
BANK = Word("bank", 'one of 32 "parts" of `shared memory`', ("tiled-gemm",))
HIT = Word("cache line, hit", "64 bytes that move together; a load that finds them", ("triple-loop",))


def prose(slug):
    """A chapter's text up to its words."""
    return source(NOTEBOOKS, slug).read_text(encoding="utf-8").partition("### Words")[0].lower()


def markdown(name):
    return "\n".join(cell.source for cell in nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells)


def linked(text, words=(BANK, HIT)):
    return link_words(text, words, "95-glossary", set())


def test_every_word_that_a_chapter_lists_is_in_the_glossary():
    page = markdown(book_contents().chapter(SLUG).name)
    rows = 0
    for chapter in book_contents().chapters:
        listed = source(NOTEBOOKS, chapter.slug).read_text(encoding="utf-8").partition("### Words")[2]
        for row in re.findall(r"^\| \*\*(.*)\*\* \|", listed.partition("\n\n**")[0], re.M):
            rows += 1
            assert f"## {row.replace('**', '')}\n".lower() in page.lower(), f"{chapter.slug}: {row}"
    assert rows > 150


@pytest.mark.parametrize("each", WORDS, ids=lambda each: each.word)
def test_every_word_of_the_glossary_is_used_in_a_chapter_that_lists_it(each):
    text = " ".join(map(prose, each.chapters))
    for name in each.names:
        stems = [word.removesuffix("s") for word in re.sub(r"\s*\(.*\)|[*`$]", "", name.lower()).split()]
        assert re.search(r"\w*\s".join(map(re.escape, stems)), re.sub(r"[*`$\\]", "", text)), name


def test_the_first_use_is_linked_with_its_meaning():
    assert linked("A bank serves; banks wait.") == (
        "A [bank](95-glossary.ipynb#bank \"one of 32 'parts' of shared memory\") serves; banks wait."
    )
    assert "[Banks](" in linked("Banks serve.")
    assert "[cache line](95-glossary.ipynb#cache-line-hit " in linked("A cache line moves.")


@pytest.mark.parametrize(
    "text",
    [
        "`bank`", "$bank$", "$$\nbank\n$$", "# The bank", "| bank | 3 |", "[a bank](03.ipynb)", "<b title='bank'>",
        "<details><summary>A bank</summary>",
        "```\nbank\n```", "A **bank** serves.", "embankment", "bank-wise", "A hit.",
    ],
)  # fmt: skip
def test_code_formulas_links_headings_and_definitions_stay(text):
    assert linked(text) == text


def test_a_chapter_links_words_of_earlier_chapters_alone():
    book = book_contents()
    assert earlier_words([BANK], "tiled-gemm", book) == []
    assert earlier_words([BANK], "triple-loop", book) == []
    assert earlier_words([BANK], "roofline", book) == [BANK]


def test_no_title_of_a_fold_holds_a_link_which_would_stay_as_it_is_written():
    book, folds = book_contents(), 0
    for chapter in book.chapters:
        cells = read_chapter(source(NOTEBOOKS, chapter.slug), book).blank.cells
        titles = re.findall(r"<summary>(.*?)</summary>", "\n".join(cell.source for cell in cells), re.S)
        assert not [title for title in titles if "](" in title], chapter.slug
        folds += len(titles)
    assert folds > 200


def test_links_of_built_chapters_lead_to_words():
    anchors = {each.anchor for each in WORDS}
    assert len(anchors) == len(WORDS)
    found = [
        anchor
        for chapter in book_contents().chapters
        for anchor in re.findall(r"glossary\.ipynb#([\w-]+) ", markdown(chapter.name))
    ]
    assert len(found) > 50
    assert set(found) <= anchors
