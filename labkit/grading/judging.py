"""Judges answers from their text, in a process of its own that runs none of them.

The child gets text and gives verdicts: `python -m labkit.grading.judging` reads JSON from its standard input
and prints one line of JSON an answer.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from labkit.exercises import exercise
from labkit.exercises.check import judge
from labkit.grading.definitions import definitions

SEEDS = 3  # so many, one after the other, draw the sizes that an answer is judged on


@dataclass(frozen=True)
class Judgement:
    """Whether an answer is right, and what the check says of it."""

    passed: bool
    said: str


def judge_answers(
    setups: Sequence[str], answers: Mapping[str, str], seed: int, timeout_s: float
) -> dict[str, Judgement]:
    """The judgement of each answer of a chapter, by exercise; none for one that takes longer than `timeout_s`."""
    readable, judged = dict(answers), {}
    while readable.keys() - judged.keys():
        wanted = [id for id in readable if id not in judged]
        lines = _child(setups, readable, wanted, seed, timeout_s * len(wanted))
        judged |= {line["exercise"]: Judgement(line["passed"], line["said"]) for line in lines}
        lost = [id for id in wanted if id not in judged]
        if lost:
            del readable[lost[0]]  # the one that the child did not come back from
    return judged


def judge_all(jobs: Mapping, seed: int, timeout_s: float) -> dict:
    """`judge_answers` of many: setups and answers by name, one process a core."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(zip(jobs, pool.map(lambda job: judge_answers(*job, seed, timeout_s), jobs.values()), strict=True))


def _child(setups, answers, wanted, seed, timeout_s):
    task = json.dumps({"setups": list(setups), "answers": dict(answers), "wanted": wanted, "seed": seed})
    command = [sys.executable, "-P", "-m", "labkit.grading.judging"]
    environment = {**os.environ, "LABKIT_DEVICE": "simulator"}
    try:
        done = subprocess.run(command, input=task.encode(), capture_output=True, timeout=timeout_s, env=environment)
        printed = done.stdout
    except subprocess.TimeoutExpired as late:
        printed = late.stdout or b""
    return [json.loads(line) for line in printed.decode().splitlines(keepends=True) if line.endswith("\n")]


def main():
    """The child: define what the answers before an answer define, then judge it, one after the other."""
    task = json.load(sys.stdin)
    lines, sys.stdout = sys.stdout, sys.stderr  # a kernel may print
    namespace = {"__name__": "__main__"}
    for number, text in enumerate(task["setups"]):
        namespace = definitions(text, f"<setup {number}>", namespace)
    for id, text in task["answers"].items():
        rules = exercise(id)
        try:
            namespace = definitions(text, f"<{id}>", {**namespace, rules.function: None})
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            passed, said = False, f"The cell fails: {type(error).__name__}: {error}"
        else:
            if id not in task["wanted"]:
                continue
            for seed in range(task["seed"], task["seed"] + SEEDS):
                verdict = judge(rules, namespace[rules.function], seed)
                if not verdict.passed:
                    break
            passed, said = verdict.passed, repr(verdict)
        print(json.dumps({"exercise": id, "passed": passed, "said": said}), file=lines, flush=True)


if __name__ == "__main__":
    main()
