"""Chapters keep a shape that readers can follow: a picture first and often, few tables, little code around records."""

import re

import pytest
from shape import read_shape

from labkit import places
from labkit.book.contents import read_toc, source

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")

# Words before the first picture: a page about a class shows what its commands wrote.
APPENDICES = {"trusting-the-simulator": 150, "your-own-code": 150, "teaching-a-class": 250}
NOTEBOOKS = places.PACKAGE.parent / "notebooks"
CHAPTERS = [entry.slug for part in read_toc(NOTEBOOKS) if part.name != "Appendices" for entry in part.chapters]

TIMED = [
    "direct-convolution",
    "im2col-and-implicit-gemm",
    "winograd",
    "fft-convolution",
    "choosing-an-algorithm",
]  # chapters whose stated minutes are held


@pytest.mark.parametrize("slug", CHAPTERS)
def test_a_chapter_has_its_shape(slug):
    shape = read_shape(source(NOTEBOOKS, slug))
    assert shape.words_before_moving <= 150, "words before the first picture that moves"
    assert shape.words_without <= 500, "words in a row without a picture"
    assert shape.core_words <= 4_500, "words before the exercises"
    assert shape.tables <= 2, "tables"
    assert shape.record_lines < 0.05 * shape.code_lines, "lines of code that read records"


@pytest.mark.parametrize("slug", TIMED)
def test_the_stated_minutes_are_those_that_it_takes(slug):
    path = source(NOTEBOOKS, slug)
    reading, exercising = map(
        int,
        re.search(r"^\*(\d+) minutes, and (\d+) for the exercises", path.read_text(encoding="utf-8"), re.M).groups(),
    )
    assert abs(reading - read_shape(path).minutes) <= 5
    assert 5 * 4 <= exercising <= 10 * 4, "5 to 10 minutes for each of four exercises"


@pytest.mark.parametrize("slug", APPENDICES)
def test_an_appendix_shows_pictures_early_and_often(slug):
    shape = read_shape(source(NOTEBOOKS, slug))
    assert shape.words_before_picture <= APPENDICES[slug], "words before the first picture"
    assert shape.words_without <= 500, "words in a row without a picture"
    assert shape.core_words <= 3_500, "words"
    assert shape.tables <= 2, "tables that are not folded"
    assert shape.record_lines < 0.05 * shape.code_lines, "lines of code that read records"
