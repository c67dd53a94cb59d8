"""The judge that the cells of a trusted notebook call: it reads answers as text, none of which runs."""

import contextlib
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache

import numpy as np

from labkit import cuda, simulate
from labkit.checking.as_text import AnswerReader
from labkit.checking.check import judge
from labkit.exercises import exercise
from labkit.grading.picture import draw_picture
from labkit.grading.process import TooSlow, limit_cpu_time
from labkit.loops import trace as trace_loop
from labkit.simulator.seam import njit
from labkit.trace import Trace

DRAWS = 2  # of the random sizes, per answer: tests hold that one tells every wrong answer known
SOLVED = "solved"
NOT_SOLVED = "not solved"
MAX_CHARACTERS = 4000
DETAILS = "details.jsonl"  # in the folder of the trusted notebook
CPU_S = 20  # that an answer may take


@dataclass(frozen=True)
class Judgement:
    """The judgement of one answer."""

    reason: str
    message: str
    line: int | None = None
    launch: str = ""  # the run that the message is about
    picture: str = ""  # of that run in SVG; "" if there is none to show
    pictured: str = ""  # the picture in words
    cause: str = ""  # that of the usual mistake which explains a wrong result; it tells no size
    pattern: str = ""  # the wrong elements of that run, as lines of text

    @property
    def hidden(self) -> bool:
        """The sizes of the run are known only to the grader."""
        return "drawn with seed" in self.launch


class Judge:
    """Judges the answers of one notebook in their order.

    An answer may use what the chapter's setup cells and the answers before it define, and nothing of another notebook.

    Parameters
    ----------
    details
        File that receives the judgements on answers that are not solved, one line of JSON each.
    """

    def __init__(self, setups: Sequence[str], seed: int, draws: int = DRAWS, details: str = os.devnull):
        self.seed, self.draws, self.details = seed, draws, details
        self.reader = AnswerReader(setups)

    def read(self, id: str, text: str) -> Judgement | None:
        """Add what an answer defines; return a judgement if it cannot be read."""
        with _silence():
            fault = self.reader.read(exercise(id), text)
        return fault and Judgement(fault.reason, fault.message, fault.line)

    def __call__(self, id: str, text: str) -> None:
        """Print the verdict on an answer, which nbval compares; write its details to their file."""
        judgement, verdict = self._judge(id, text, repairs=False)
        if judgement.reason == SOLVED:
            print(SOLVED)
            return
        judgement = replace(judgement, message=judgement.message[:MAX_CHARACTERS])
        if judgement.hidden:
            judgement = replace(judgement, pattern="")
        elif verdict and isinstance(verdict.trace, Trace):
            with _silence():
                picture, pictured = draw_picture(verdict.trace, verdict.line, verdict.access)
            judgement = replace(judgement, picture=picture, pictured=pictured[:MAX_CHARACTERS])
        with open(self.details, "a", encoding="ascii") as file:
            file.write(f"{json.dumps(asdict(judgement))}\n")
        print(NOT_SOLVED)

    def judgement(self, id: str, text: str) -> Judgement:
        """Judge an answer, and add what it defines."""
        return self._judge(id, text, repairs=True)[0]

    def _judge(self, id, text, repairs):
        """Return the judgement, and the verdict on which it rests, if there is one."""
        if unreadable := self.read(id, text):
            return unreadable, None
        rules = exercise(id)
        if rules.machine == "cpu":
            compile_tracer()
        try:
            with _silence(), limit_cpu_time(CPU_S):
                verdict = judge(rules, self.reader.namespace[rules.function], self.seed, self.draws, repairs)
        except (RecursionError, MemoryError) as error:
            return Judgement("refused", f"The answer is too large to judge: {type(error).__name__}."), None
        except TooSlow:
            return Judgement("too slow", explain_timeout(f"{CPU_S} s of computing")), None
        of_result = {"cause": verdict.cause, "pattern": "\n".join(verdict.picture)}
        judgement = Judgement(verdict.reason, verdict.message, verdict.line, verdict.launch, **of_result)
        return judgement, verdict


def explain_timeout(limit: str) -> str:
    """Return the message on an answer that takes longer than a limit."""
    return f"The judge took longer than {limit} over this answer: make it smaller or simpler."


@njit
def _loop(x):
    for i in range(x.size):
        x[i] += x[i]


@cache
def compile_tracer() -> None:
    """Compile what traces loops, so that no answer waits for it."""
    trace_loop(_loop, np.zeros(1))


@cuda.jit
def _racing_kernel(x, count):
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    if t < 32:
        cuda.atomic.add(count, 0, tile[63 - t])
    cuda.syncthreads()
    x[t] = tile[t]


def compile_checks() -> None:
    """Compile the counters and checks of accesses, so that no answer waits for them: some seconds, once."""
    simulate(_racing_kernel, 2, 64, np.zeros(64, np.float32), np.zeros(1, np.float32))


@contextlib.contextmanager
def _silence():
    """Suppress the output of a kernel and Python's warnings, which are no part of the verdict."""
    with open(os.devnull, "w", encoding="utf-8", errors="replace") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield
