"""The result of a check: plain data that a notebook shows and a grader compares."""

import re
from dataclasses import dataclass, field
from html import escape

from labkit.checking.failing_access import FailingAccess
from labkit.loops.loop_trace import LoopTrace
from labkit.trace import Trace


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check.

    `reason` is "solved", "unfinished", "not a kernel", "refused", "launch", "result", "unwritten", "input changed",
    "budget", "duty", "gpu", or the kind of the finding that decided ("race", "bounds", ...).
    """

    exercise: str
    title: str
    out_of: int  # points of a right answer
    reason: str
    message: str  # what is wrong, and what to do
    line: int | None = None  # of the learner's code
    launch: str = ""  # label of the run that the message is about
    grading_problem: str = ""  # why an answer that is right here earns nothing when its text is graded; "" if it earns
    seed: int | None = None  # of the random sizes: `check(..., seed=...)` makes the same runs
    number: str = ""  # as shown, "03.2"
    cause: str = ""  # of a wrong result that an exercise's usual mistake explains, in words that follow "as if"
    picture: tuple[str, ...] = ()  # of wrong elements that follow no simple pattern, as lines of text
    access: FailingAccess | None = field(default=None, repr=False, compare=False)  # at which the run goes wrong
    trace: Trace | LoopTrace | None = field(default=None, repr=False, compare=False)  # of the run, for the views

    @property
    def passed(self) -> bool:
        return self.reason == "solved"

    @property
    def points(self) -> int:
        return self.out_of if self.passed and not self.grading_problem else 0

    @property
    def headline(self) -> str:
        points = "1 point" if self.out_of == 1 else f"{self.out_of} of {self.out_of} points"
        outcome = f"solved, {points}" if self.passed else "not yet"
        outcome = "solved here, but not as it is graded" if self.grading_problem else outcome
        return f"{'✓' if self.passed else '✗'} {self.number or self.exercise} {self.title}: {outcome}"

    @property
    def _explanation(self):
        if not self.grading_problem:
            return self.message
        return f"The text of the cell, which alone is graded, earns nothing yet. {self.grading_problem}"

    def __repr__(self):
        lines = [self.headline, *self._explanation.splitlines(), *self.picture]
        if self.launch:
            lines.append(f"(run on {self.launch})")
        return "\n   ".join(lines)

    def _repr_html_(self):
        colour = "#009e73" if self.passed and not self.grading_problem else "#d55e00"
        message = re.sub("`([^`]+)`", r"<code>\1</code>", "<br>".join(map(escape, self._explanation.splitlines())))
        *cells, key = self.picture or ("",)
        cells = "\n".join(map(escape, cells))
        picture = f'<pre role="img" aria-label="Wrong elements" style="line-height: 1">{cells}</pre>{escape(key)}'
        launch = f'<br><span style="opacity: 0.75">run on {escape(self.launch)}</span>' if self.launch else ""
        return (
            f'<div style="border-left: 4px solid {colour}; padding: 4px 12px; line-height: 1.5">'
            f"<b>{escape(self.headline)}</b><br>{message}{picture * bool(cells)}{launch}</div>"
        )
