"""`Table`: rows under headings, as text and as HTML; rows as JSON, one per line; numbers as text."""

import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Table:
    """Rows under headings, which a notebook shows as a table and a terminal as aligned text.

    Parameters
    ----------
    columns
        The headings.
    rows
        One cell per column: text, in which backticks mark `code`, or a number (also as text), which is aligned right.
    folded
        For a long table: the line that a reader clicks to see it.
    caption
        A sentence below the rows, such as where figures come from.
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], folded: str = "", caption: str = ""):
        self.folded = folded
        self.caption = caption
        self.columns = list(columns)
        self.rows = [list(row) for row in rows]

    def __repr__(self):
        cells = [self.columns, *([_text(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells)]
        sides = [[self._side(column) for column in range(len(self.columns))], *(map(_side, row) for row in self.rows)]
        lines = [
            "  ".join(f"{cell:{ALIGNMENT[side]}{width}}" for cell, side, width in zip(*row, widths)).rstrip()
            for row in zip(cells, sides)
        ]
        return "\n".join([*lines, self.caption] if self.caption else lines)

    def _repr_html_(self):
        head = "".join(
            f'<th scope="col" style="text-align: {self._side(column)}">{_html(name)}</th>' if name else "<td></td>"
            for column, name in enumerate(self.columns)
        )
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in self.rows)
        style = "caption-side: bottom; text-align: left"
        caption = f'<caption style="{style}">{_html(self.caption)}</caption>' if self.caption else ""
        table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<details><summary>{_html(self.folded)}</summary>{table}</details>" if self.folded else table

    def _side(self, column):
        """Return the side to which a heading is aligned: right if each cell below it is a number or empty."""
        sides = {_side(row[column]) for row in self.rows if row[column] != ""}
        return "right" if sides == {"right"} else "left"


def json_lines(rows: Iterable[Any], row_indent: str = "", end_indent: str = "", **options) -> str:
    """Return rows as a JSON list with one row per line, as people review them; `options` go to `json.dumps`."""
    return "[\n" + ",\n".join(row_indent + json.dumps(row, **options) for row in rows) + f"\n{end_indent}]"


NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]\d+)?%?")  # as text
ALIGNMENT = {"left": "<", "right": ">"}  # in a format specification


def _side(value):
    return "right" if isinstance(value, int | float) or NUMBER.fullmatch(str(value)) else "left"


def _cell(value):
    return f'<td style="text-align: {_side(value)}; vertical-align: top">{_html(_text(value))}</td>'


def short_number(value: float) -> str:
    """Return a number with three digits, from 1,000 on with all digits before the point."""
    return f"{value:,.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def count_text(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things: "1 lane", "2 lanes", "2 launches"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _text(value):
    if isinstance(value, float):
        return short_number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _html(text):
    """Return text as HTML, `code` between backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
