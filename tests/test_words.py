"""Words that are never right in this project: names, docstrings, comments and prose use the field's.

Public names stay: steps, by which results and links go, and functions that learners' notebooks define.
"""

import re

import pytest

from labkit import exercises, places
from labkit.exercises.contents import book_contents
from labkit.ladder.discovery import every_ladder

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")

WORDS = {
    "dear|dearer|dearest|dearly": "expensive",
    "mend|mends|mended|mending": "fix",
    "in vain": "wasted",
    "rival|rivals": "baseline",
    "befall|befalls|befell|befallen": "happen to",
    "reckon|reckons|reckoned": "calculate, expect",
    "copy engine|copy engines": "TMA",
    "whoever|whomever|whosoever": "name who: a kernel that, readers who",
    "everybody": "name who: all threads, each warp",
    "lest": "so that ... not",
    "thrown out": "evicted",
    "dealt out": "scheduled, assigned",
    "under way|underway": "in flight",
    "take turns|takes turns|taking turns|took turns": "alternate, ping-pong",
    "shrunk": "alpha, rescaled",
    "astray|amiss": "wrong",
    "heed|heeds|heeded": "follow",
    "apiece": "each",
    "whence|thence|thither|hither": "from which",
    "naught|nought": "nothing, zero",
    "beheld|behold": "see",
}
NEVER = re.compile(rf"(?<![a-z])(?:{'|'.join(WORDS)})(?![a-z])")
KINDS = {".py", ".pyi", ".md", ".js", ".css", ".cu", ".toml", ".yml", ".cff"}
ROOMS = "labkit", "notebooks/source", "notebooks/toc.yml", "kernels", "site", ".github", "tests"
FILES = "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile"


def texts():
    for name in (*ROOMS, *FILES):
        there = places.CHECKOUT / name
        for path in [there] if there.is_file() else sorted(there.rglob("*")):
            built = places.CHECKOUT / "site/build" in path.parents
            if not built and (path.suffix in KINDS or path.name == "Makefile"):
                yield path.relative_to(places.CHECKOUT).as_posix(), path.read_text(encoding="utf-8")


def spoken(text: str) -> str:
    """Return the text in lower case, with the parts of each name as words of their own, and line breaks as spaces."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.sub(r"[\s_]+(?:#\s*|//\s*|\*\s+)?", " ", apart).lower()


@pytest.fixture(scope="module")
def public() -> list[str]:
    """Names of steps and of exercises' functions that hold one of the words."""
    steps = {step.slug for each in every_ladder() for step in each}
    answers = {exercises.exercise(id).function for chapter in book_contents().chapters for id in chapter.exercises}
    return [name for name in steps | answers if NEVER.search(spoken(name))]


def test_no_text_has_a_word_that_is_never_right(public):
    wrong = []
    for path, text in texts():
        if path == "tests/test_words.py":
            continue
        for name in public:
            text = re.sub(rf"(?<![a-z_])(?:s\d\d_)?{name}(?![a-z_])", "", text)
        wrong += [f"{path}: {found[0]}" for found in NEVER.finditer(spoken(text))]
    assert not wrong, f"{len(wrong)} of these, see WORDS for what to write: " + ", ".join(wrong[:40])


@pytest.mark.parametrize(
    "text, found",
    [
        ("def fastest_rival(record):", "rival"),
        ("class CopyEngine:", "copy engine"),
        ("# the copies\n    # under way", "under way"),
        ("'''multiplied in\nvain'''", "in vain"),
        ("amendments, nearest, deary, arrival, chapter_in_vainglory", None),
    ],
)
def test_words_are_found_in_names_and_over_the_ends_of_lines(text, found):
    match = NEVER.search(spoken(text))
    assert (match and match[0]) == found


UNITS = "thread|warp|block|lane|row|column|tile|step|query|key|channel|pixel|output"
COUNTED = "threads|warps|lanes|elements|bytes|numbers|outputs|loads|sectors|requests|memory|c"
A_FOR_PER = re.compile(rf"\b(?:an? (?:{UNITS})|(?:{COUNTED})) an? (?:{UNITS})\b")


def test_exercises_say_per_for_a_rate():
    wrong = []
    for path, text in texts():
        if path.startswith("labkit/exercises/"):
            joined = re.sub(r'"\s*\n\s*f?"', "", text)  # literals of one sentence
            wrong += [f"{path}: {found[0]}" for found in A_FOR_PER.finditer(spoken(joined))]
    assert not wrong, "write `one warp per row`: " + ", ".join(wrong)


@pytest.mark.parametrize(
    "text, found",
    [
        ("label=f'X {rows} x {columns}, a warp a row'", "a warp a row"),
        ("3 KB of shared memory a\nblock", "memory a block"),
        ("one warp per row, and each thread has a row, which a warp loads", None),
    ],
)
def test_a_rate_without_per_is_found(text, found):
    match = A_FOR_PER.search(spoken(text))
    assert (match and match[0]) == found
