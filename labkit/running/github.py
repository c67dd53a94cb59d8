"""Findings as annotations of a GitHub workflow, which shows them at their lines of a pull request.

(GitHub Docs, "Workflow commands for GitHub Actions", section "Setting an error message".)
"""

from labkit.running.collector import Collector
from labkit.running.text import short_path

LEVELS = {"error": "error", "advice": "notice"}


def to_annotations(collector: Collector) -> str:
    """Return one workflow command per finding, each on a line."""
    lines = []
    for merged in collector.findings:
        finding = merged.finding
        title = f"{finding.kind} in kernel {merged.kernel}" if merged.kernel else finding.kind
        file = _escaped(short_path(merged.file), ":,")
        lines.append(
            f"::{LEVELS[finding.severity]} file={file},line={finding.line},title={_escaped(title, ':,')}::"
            f"{_escaped(finding.message)}\n"
        )
    return "".join(lines)


def _escaped(text: str, more: str = "") -> str:
    """Return text with the characters escaped that would end a command, or one of its properties."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
