"""The appendix of claims: each has a source, a verdict, what was measured, and a chapter."""

import re

import jupytext
import pytest

from labkit import places
from labkit.book import claims
from labkit.book.claims import NOWHERE, OPEN, PLANNED, VERDICTS
from labkit.book.contents import source, title_of
from labkit.exercises.contents import book_contents

ROWS = claims().rows
SECTIONS = list(dict.fromkeys(row.section for row in ROWS))
NOTEBOOKS = places.folder("notebooks")


def some_of(section):
    """A section's claims, with a text for each that has a verdict."""
    return claims(section, **{row.name: "7 ms" for row in ROWS if row.section == section and row.verdict != OPEN})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.section}-{row.name}")
def test_a_claim_has_a_source_a_known_verdict_and_a_reason_of_one_sentence(row):
    assert row.claim and row.source and row.verdict in VERDICTS
    assert re.fullmatch(r"[A-Z0-9`].*[^.]\.", row.reason) and len(row.reason.split()) <= 30
    assert not re.search(r"[a-z]\. [A-Z]", row.reason), "one sentence"
    assert "|" not in row.claim + row.source + row.reason, "it would end a cell of the table"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.section}-{row.name}")
def test_a_claim_leads_to_a_chapter_or_is_open(row):
    chapter = book_contents().chapter(row.chapter)
    if chapter:
        assert row.link == f"[chapter {chapter.number}]({chapter.name}.ipynb)"
    else:
        assert row.verdict == OPEN and row.chapter in (*PLANNED, NOWHERE)


def test_a_planned_chapter_is_none_of_the_book():
    written = {slug for slug in PLANNED if book_contents().chapter(slug)}
    assert not written, "take it out of PLANNED, and judge its claims"
    assert {row.chapter for row in ROWS} >= {*PLANNED}, "each has a claim"


def test_no_claim_stands_twice():
    names = [(row.section, row.name) for row in ROWS]
    texts = [row.claim for row in ROWS]
    assert len({*names}) == len(names) and len({*texts}) == len(texts)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_row_of_a_table_says_what_was_measured_or_that_it_is_open(section):
    lines = some_of(section)._repr_markdown_().splitlines()[2:]
    assert len(lines) == sum(row.section == section for row in ROWS)
    for line in lines:
        claim, measured, verdict, where = line.strip("| ").split(" | ")
        assert measured == "7 ms" or (measured == OPEN and verdict.startswith("**open.**"))
        assert claim.startswith("*") and "<br>" in claim and where


@pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")
def test_the_appendix_shows_each_section_once_with_its_title():
    path = source(NOTEBOOKS, "claims")
    cells = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst").cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert re.findall(r'\bclaims\(\s*"(\w+)"', code) == SECTIONS
    assert title_of(path) == "What the literature says, measured"


def test_verdicts_are_counted_by_part():
    counts = claims().count()
    assert list(counts) == ["Matrix multiplication", "Convolution", "Memory", "Attention", "Networks"]
    assert all(list(of_part) == list(VERDICTS) for of_part in counts.values())
    assert sum(sum(of_part.values()) for of_part in counts.values()) == len(ROWS)
    assert counts["Networks"][OPEN] == sum(row.part == "Networks" for row in ROWS)


def test_a_table_as_text_has_the_measured_figures():
    assert "137 GFLOP" in repr(some_of("loops")) and "7 ms" in repr(some_of("loops"))


@pytest.mark.parametrize(
    ("section", "measured", "words"),
    [
        ("lopps", {}, "no section 'lopps': choose from loops, caches"),
        ("norms", {"unfussed": "10"}, "norms has no claim 'unfussed': choose from unfused, fused, faster"),
        ("norms", {"unfused": "10"}, "norms says nothing measured of fused, faster"),
    ],
)
def test_a_wrong_name_and_a_missing_measurement_are_refused(section, measured, words):
    with pytest.raises(ValueError, match=words):
        claims(section, **measured)
