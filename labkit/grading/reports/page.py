"""A page for each student: the points of each exercise, what is wrong, and the line of their own text."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from html import escape
from itertools import groupby

from labkit.exercises import exercise
from labkit.grading.assessment import Assessment
from labkit.grading.grades import Grade, format_points, sum_points
from labkit.grading.policy import LatePolicy

MAX_PICTURE_CHARACTERS = 160_000  # on a page
CONTEXT_LINES = 2  # lines of the answer shown before and after the marked one
HIDDEN = {  # messages on a run whose sizes must stay unknown
    "result": "The result is wrong on sizes that are drawn anew for each grading.",
    "unwritten": "Part of the result is never written, on sizes that are drawn anew for each grading.",
    "budget": "The result is right, but not within the budget, on sizes that are drawn anew for each grading.",
    "bounds": "An access goes outside its array, on sizes that are drawn anew for each grading.",
    "race": "Two threads race, on sizes that are drawn anew for each grading.",
}
DRAWN_ANEW = (
    "Each answer was also checked on sizes that are drawn anew for each grading. "
    "An answer that passes the check in the notebook can fail on these."
)
TIME = "%Y-%m-%d %H:%M %z"
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.25; } h2 { font-size: 1.25rem; margin: 0; } ul { padding-left: 1.25rem; }
h1, h2, p, li, pre, figcaption { overflow-wrap: anywhere; }
section { border-left: 4px solid #d55e00; padding: 0 0 0 1rem; margin: 2rem 0; }
section.full { border-color: #009e73; }
section.open { border-color: #0072b2; }
pre { white-space: pre-wrap; background: #8881; padding: .5rem; font-size: .85rem; }
pre.pattern { display: table; line-height: 1; white-space: pre; font-size: min(.85rem, 2.5vw); }
pre.pattern + p, figcaption { font-size: .9rem; } mark { background: #d55e0040; color: inherit; }
figure { margin: 1rem 0; } img { max-width: 100%; background: #fff; border-radius: 4px; }
@media (max-width: 30rem) { body { margin: 1rem auto; } }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee; color-scheme: dark; } }
"""


@dataclass(frozen=True)
class Picture:
    """The picture of a student's own run, as SVG and in words."""

    svg: str
    words: str

    @cached_property
    def html(self) -> str:
        """An image element that runs no script and fetches nothing, for any SVG."""
        source = b64encode(self.svg.encode("utf-8", "replace")).decode()
        words = escape(self.words)
        return (
            f'<figure><img alt="{words}" src="data:image/svg+xml;base64,{source}">'
            f"<figcaption>Your own run. {words}</figcaption></figure>"
        )


def make_page(
    student: str,
    rows: list[Grade],
    texts: Mapping[tuple[str, str], str],
    pictures: Mapping[tuple[str, str], Picture],
    assessment: Assessment,
) -> str:
    """Make the page of a student, without seeds, drawn sizes, or anything of others."""
    total = format_points(*sum_points(rows)[rows[0].student])
    parts, drawn = [], 0
    for _, group in groupby(rows, key=section_key):
        section = list(group)
        row = section[0]
        key = row.submission, row.exercise
        picture = pictures[key].html if key in pictures and not row.hidden else ""
        if drawn + len(picture) > MAX_PICTURE_CHARACTERS:
            picture = "<p>There is a picture of this run too, for which the page has no room: run the check.</p>"
        drawn += len(picture)
        parts.append(_make_section(section, texts.get(key, ""), picture))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(student)}</title><style>{STYLE}</style></head>\n"
        f"<body><main><h1>{escape(student)}: {total}</h1>\n"
        f"<p>{escape(_describe_assignment(student, assessment))}</p>\n" + "\n".join(parts) + "\n</main></body></html>\n"
    )


def file_name(student: str) -> str:
    """Return the file name of a student's page."""
    return f"{make_safe_name(student)}.html"


def make_safe_name(text: str) -> str:
    """Make a unique name that every file system accepts."""
    plain = re.sub(r"[^\w-]", "-", text, flags=re.ASCII)[:40]
    digest = sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return plain if plain and plain == text.lower() else f"{plain}-{digest}"


def headline(*rows: Grade) -> str:
    """Return the heading of a row, or of rows of one section, with their points."""
    first, *more = rows
    title = exercise(first.exercise).headline if first.exercise else first.submission or "All exercises"
    title = ", ".join(exercise(row.exercise).number for row in rows) if more else title
    points = [row.points for row in rows if row.points is not None]
    total = sum(points) if len(points) == len(rows) else None
    return f"{title}: {format_points(total, sum(row.out_of for row in rows))}"


def explain(row: Grade) -> list[str]:
    """Return the lines that a student reads: on a run with hidden sizes, only the kind of fault."""
    message = row.message
    if row.hidden and row.reason != "solved":
        cause = f" It comes out as if {row.cause}." if row.cause else ""
        message = HIDDEN.get(row.reason, "This goes wrong on sizes that are drawn anew for each grading.") + cause
    ran = f"Run as a program: {row.ran}" if row.ran else ""
    return "\n".join(filter(None, [row.by_hand, message, row.published, row.note, row.late, ran])).splitlines()


def _describe_assignment(student, assessment):
    """Describe the graded work, its deadline, and the way of grading."""
    collected, deadline = assessment.collected.get(student), assessment.deadline
    sentences = [f"Assignment {assessment.assignment}."] if assessment.assignment else []
    if collected and collected.commit:
        date = f" of {collected.time:{TIME}}" if collected.time else ""
        sentences.append(f"Commit {collected.commit[:7]}{date}. {collected.told_left_out}".strip())
    if collected and collected.late_commit:
        is_better = assessment.late_policy is LatePolicy.BETTER
        counts = "the better answer of the two counts" if is_better else "it alone counts"
        sentences.append(f"Late commit {collected.late_commit[:7]}: {counts}.")
    if deadline:
        sentences.append(f"Due {deadline.due:{TIME}}.")
    return " ".join([*sentences, DRAWN_ANEW])


def section_key(row: Grade) -> tuple:
    """Return a key that is equal for rows of one section: those without an answer that have the same message."""
    is_absent = row.exercise and (row.reason in ("missing", "unreadable") or not row.submission)
    return (row.points, explain(row)) if is_absent else (row.submission, row.exercise)


def _make_section(rows, text, picture):
    row = rows[0]
    kind = "open" if row.points is None else "full" if row.exercise and row.points >= row.out_of else "less"
    parts = [f"<h2>{escape(headline(*rows))}</h2>", *_format_lines(explain(row)), _format_pattern(row)]
    return f'<section class="{kind}">{"".join(parts)}{_quote_line(row, text)}{picture}</section>'


def _format_lines(lines):
    """Yield paragraphs, and lists of the lines that begin with a dash; what stands in backticks is code."""
    for is_list, group in groupby(lines, key=lambda line: line.startswith("- ")):
        texts = [re.sub("`([^`]+)`", r"<code>\1</code>", escape(line.removeprefix("- "))) for line in group]
        if is_list:
            yield f"<ul>{''.join(f'<li>{text}</li>' for text in texts)}</ul>"
        else:
            yield "".join(f"<p>{text}</p>" for text in texts)


def _format_pattern(row):
    if not row.pattern:
        return ""
    *cells, key = map(escape, row.pattern.splitlines())
    image = "\n".join(cells)
    return f'<pre class="pattern" role="img" aria-label="Wrong elements">{image}</pre><p>{key}</p>'


def _quote_line(row, text):
    lines = text.rstrip().split("\n")
    if row.line is None or not 1 <= row.line <= len(lines):
        return ""
    first = max(1, row.line - CONTEXT_LINES)
    shown = []
    for number, line in enumerate(lines[first - 1 : row.line + CONTEXT_LINES], first):
        line = escape(f"{number:4} {''.join(c if c.isprintable() else ' ' for c in line[:200])}")
        shown.append(f"<mark>{line}</mark>" if number == row.line else line)
    return f"<pre>{chr(10).join(shown)}</pre>"
