"""Findings on the kernel's source: the line, a caret, the sentence, the two threads of a race."""

from labkit.loops import LoopTrace
from labkit.table import count_text
from labkit.trace import Finding, Trace
from labkit.views.base import COLOURS, View, table
from labkit.views.wording import ANY_TRACE, check_trace

MARKS = {"error": "✖ error", "advice": "◆ advice"}


def findings(trace: Trace | LoopTrace) -> View:
    """Show a kernel's or loop's source with what the simulator found, each under the line it is about."""
    check_trace("findings", trace, ANY_TRACE)
    ordered = sorted(trace.findings, key=lambda finding: (finding.severity != "error", finding.line))
    notes = {}
    for finding in ordered:
        notes.setdefault(finding.line, []).append(_note(trace, finding))
        if finding.other_line not in (None, finding.line):
            notes.setdefault(finding.other_line, []).append(_second_note(trace, finding))
    lines = trace.source.rstrip().split("\n")
    data = {
        "say": _summary(trace),
        "lines": [
            {"number": number, "text": text, "notes": notes.get(number, [])}
            for number, text in enumerate(lines, trace.first_line)
        ],
        "table": table(
            ("", "line", "finding", "threads", "times"),
            [[MARKS[f.severity], f.line, f.message, " and ".join(_threads(trace, f)), f"{f.count:,}"] for f in ordered],
        ),
    }
    return View("findings", f"Findings in `{trace.kernel}`", data, draw_still)


def _summary(trace):
    errors, advice = len(trace.errors), len(trace.advice)
    if not errors and not advice:
        return "Nothing wrong was found in this run."
    parts = [f"**{count_text(errors, 'error')}**"] if errors else ["No errors"]
    if advice:
        parts.append(f"{count_text(advice, 'piece')} of advice")
    return " and ".join(parts) + "."


def _note(trace, finding: Finding):
    site = next((s.site for s in trace.sites if (s.site.line, s.site.column) == (finding.line, finding.column)), None)
    mark = {"severity": finding.severity, "mark": f"{MARKS[finding.severity]}: {finding.kind}"}
    span = {"column": finding.column, "width": len(site.text) if site else 1}
    times = f"{finding.count:,} times" if finding.count > 1 else ""
    return mark | span | {"message": _without_line(finding), "threads": _threads(trace, finding), "times": times}


def _threads(trace, finding):
    return [thread.named(trace.grid, trace.block) for thread in finding.threads]


def _without_line(finding):
    """Return the sentence without the number of the line that it is shown under."""
    sentence = finding.message.removeprefix(f"Line {finding.line}: ")
    return sentence[:1].upper() + sentence[1:]


def _second_note(trace, finding):
    """Return the note at the second line of a race or a deadlock."""
    line_and_array = finding.other_line, finding.array
    site = next((s.site for s in trace.sites if (s.site.line, s.site.array) == line_and_array), None)
    noun, message = "access", f"It meets line {finding.line} here."
    if finding.kind == "deadlock":
        noun, message = "wait", f"Neither this one nor that of line {finding.line} ends."
    mark = {"severity": finding.severity, "mark": f"✖ the other {noun} of the {finding.kind}"}
    span = {"column": site.column if site else 0, "width": len(site.text) if site else 0}
    return mark | span | {"message": message, "threads": [], "times": ""}


def draw_still(figure, data, step):
    """Draw the listing as text, with its notes."""
    rows = []
    for line in data["lines"]:
        colour = COLOURS["hot"] if any(n["severity"] == "error" for n in line["notes"]) else COLOURS["fg"]
        rows.append((f"{line['number']:>4}  {line['text']}", colour))
        for note in line["notes"]:
            tone = COLOURS["hot" if note["severity"] == "error" else "A"]
            rows.append((" " * (6 + note["column"]) + "^" * note["width"], tone))
            rows.append((f"      {note['mark']}: {note['message']}", tone))
    figure.set_size_inches(9.5, 0.2 * len(rows) + 0.3)
    for i, (text, colour) in enumerate(rows):
        figure.text(0.01, 1 - (i + 1) / (len(rows) + 1), text, family="monospace", size=8, color=colour)
