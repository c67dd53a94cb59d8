"""The learner's progress through the book: exercises solved and points, chapter by chapter."""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

from labkit import places
from labkit.exercises import chapter_of, exercise, known_ids
from labkit.exercises.contents import Chapter, book_contents
from labkit.exercises.progress import read
from labkit.table import count_text

SOLVED, TRIED, OPEN = "solved", "tried", "open"
_MARKS = {SOLVED: "✓", TRIED: "…", OPEN: "○"}


@dataclass(frozen=True)
class Progress:
    """The points of each tried exercise; a notebook shows them as a table of the chapters that have exercises.

    An exercise that only an earlier edition has counts where it was solved, and its points stay.
    """

    points: dict[str, int]

    def state(self, id: str) -> str:
        """Whether an exercise is "solved", "tried" or "open"."""
        return OPEN if id not in self.points else SOLVED if self.points[id] else TRIED

    @property
    def ids(self) -> list[str]:
        """The exercises that count, in the book's order: those of the chapters that are here, and all solved ones."""
        here = {id for chapter in _chapters() for id in chapter.exercises}
        return [id for id in known_ids() if id in here or self.state(id) == SOLVED]

    @property
    def sentence(self) -> str:
        """The totals in words."""
        ids = self.ids
        solved = sum(self.state(id) == SOLVED for id in ids)
        points, out_of = sum(self.points.get(id, 0) for id in ids), sum(exercise(id).points for id in ids)
        return f"{solved} of {count_text(len(ids), 'exercise')} solved, {points} of {count_text(out_of, 'point')}."

    def __repr__(self):
        lines = [self.sentence]
        for chapter in _chapters():
            marks = " ".join(_MARKS[self.state(id)] for id in self._ids_of(chapter))
            lines.append(f"{chapter.number}  {marks}")
        return "\n".join(lines)

    def _repr_html_(self):
        rows = "".join(map(self._row, _chapters()))
        names = "chapter", "exercises", "points"
        head = "".join(f'<th scope="col" style="text-align:left">{name}</th>' for name in names)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        total = len(self.ids)
        solved = sum(self.state(id) == SOLVED for id in self.ids)
        bar = f'<progress max="{total}" value="{solved}" aria-label="exercises solved" style="width:20em"></progress>'
        legend = ", ".join(f"{mark} {state}" for state, mark in _MARKS.items())
        more = f"<details><summary>Chapter by chapter</summary>{table}<p>{legend}</p></details>"
        return f"<p>{escape(self.sentence)}</p>{bar}{more}"

    def _ids_of(self, chapter: Chapter):
        return [id for id in self.ids if chapter_of(id) == chapter.slug]

    def _row(self, chapter: Chapter):
        ids = self._ids_of(chapter)
        title = _first_cell(chapter).partition("# ")[2].partition("\n")[0]
        marks = " ".join(
            f'<span title="{escape(exercise(id).title)}: {self.state(id)}">{_MARKS[self.state(id)]}</span>'
            for id in ids
        )
        points = sum(self.points.get(id, 0) for id in ids)
        out_of = sum(exercise(id).points for id in ids)
        link = f'<a href="{chapter.name}.ipynb">{escape(title)}</a>'
        cells = link, marks, f"{points} of {out_of}"
        return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


def progress(folder: Path | None = None) -> Progress:
    """Return what was tried and solved in a workspace: in this one, if None."""
    return Progress(read(folder))


def _chapters():
    return [chapter for chapter in book_contents().chapters if chapter.exercises and _path(chapter).is_file()]


def _path(chapter: Chapter):
    """Return the path of its blank notebook, which a release has of its own chapters alone."""
    return places.folder("notebooks") / f"{chapter.name}.ipynb"


def _first_cell(chapter: Chapter):
    return "".join(json.loads(_path(chapter).read_text(encoding="utf-8"))["cells"][0]["source"])
