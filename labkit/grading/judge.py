"""What the cells of a trusted notebook call: judges answers from their text, of which nothing runs."""

import contextlib
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from labkit import cuda, simulate
from labkit.checking.as_text import AnswerReader
from labkit.checking.check import judge
from labkit.exercises import exercise
from labkit.grading.picture import draw_picture
from labkit.trace import Trace

DRAWS = 3  # so many times are the drawn sizes of an answer drawn
SOLVED = "solved"
NOT_SOLVED = "not solved"
MAX_CHARACTERS = 4000


@dataclass(frozen=True)
class Judgement:
    """What is said of one answer; `launch` names the run that the message speaks of.

    `picture` is that run in SVG, and `pictured` in words; both are empty where there is none to show.
    """

    reason: str
    message: str
    line: int | None = None
    launch: str = ""
    picture: str = ""
    pictured: str = ""

    @property
    def hidden(self) -> bool:
        """Whether the run was on sizes that only the grader knows."""
        return "drawn with seed" in self.launch


class Judge:
    """Judges the answers of one notebook, in the order in which they stand there.

    An answer may use what the chapter's setup cells and the answers before it define, and nothing of another notebook.
    """

    def __init__(self, setups: Sequence[str], seed: int, draws: int = DRAWS):
        self.seed, self.draws = seed, draws
        self.texts = AnswerReader(setups)

    def read(self, id: str, text: str) -> Judgement | None:
        """Take up what an answer defines; says what keeps it from being read."""
        with _silence():
            wrong = self.texts.read(exercise(id), text)
        return wrong and Judgement(wrong.reason, wrong.message, wrong.line)

    def __call__(self, id: str, text: str) -> None:
        """Print the verdict on an answer, which nbval compares; what it says is JSON on a line of its own."""
        judgement, trace = self._judged(id, text)
        if judgement.reason == SOLVED:
            print(SOLVED)
            return
        picture, pictured = "", ""
        if isinstance(trace, Trace) and not judgement.hidden:
            with _silence():
                picture, pictured = draw_picture(trace, judgement.line)
        message, pictured = judgement.message[:MAX_CHARACTERS], pictured[:MAX_CHARACTERS]
        said = replace(judgement, message=message, picture=picture, pictured=pictured)
        print(NOT_SOLVED, json.dumps(asdict(said)), sep="\n")

    def judgement(self, id: str, text: str) -> Judgement:
        """The verdict on an answer, whose definitions are taken up."""
        return self._judged(id, text)[0]

    def _judged(self, id, text):
        """The verdict, and the trace of the run that it speaks of, if there is one."""
        if unreadable := self.read(id, text):
            return unreadable, None
        rules = exercise(id)
        try:
            with _silence():
                verdict = judge(rules, self.texts.namespace[rules.function], self.seed, self.draws)
        except (RecursionError, MemoryError) as error:
            return Judgement("refused", f"The answer is too large to judge: {type(error).__name__}."), None
        return Judgement(verdict.reason, verdict.message, verdict.line, verdict.launch), verdict.trace


@cuda.jit
def _racing_kernel(x, count):
    kept = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    kept[t] = x[t]
    if t < 32:
        cuda.atomic.add(count, 0, kept[63 - t])
    cuda.syncthreads()
    x[t] = kept[t]


def compile_checks() -> None:
    """Compile what counts and checks a kernel's accesses, which no answer should wait for: half a minute, once."""
    simulate(_racing_kernel, 2, 64, np.zeros(64, np.float32), np.zeros(1, np.float32))


@contextlib.contextmanager
def _silence():
    """What a kernel prints and what Python warns of is no part of the verdict."""
    with open(os.devnull, "w", encoding="utf-8", errors="replace") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield
