"""`labkit prove`: the checks of an instructor's own exercises held to what the tests ask of the book's."""

import shutil
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import nbformat
import numpy as np

from labkit.book.chapter import Chapter, exercise_cell_id, read_chapter, read_solutions
from labkit.checking.answers import KINDS, Answer
from labkit.checking.as_text import AnswerReader, Unreadable
from labkit.checking.check import judge, read_constants
from labkit.checking.exercise import Launch, Questions
from labkit.checking.mutants import mutations
from labkit.checking.proof import (
    SOLVED,
    find_telling_mistakes,
    find_unproven_mistakes,
    find_wrong_mistake,
    find_wrong_verdict,
    make_launches,
    make_other_launches,
    survives,
)
from labkit.checking.setup_cells import is_setup_cell
from labkit.checking.source import python_function
from labkit.checking.verdict import Verdict
from labkit.course.handout import make_student_notebook
from labkit.course.leaks import find_leaks
from labkit.course.release import EXAMPLE
from labkit.exercises import exercise, exercise_ids
from labkit.exercises.own import OwnCourseError, own_folder, own_modules, own_sources
from labkit.grading.judge import CPU_S, compile_checks, compile_tracer
from labkit.grading.process import TooSlow, limit_cpu_time
from labkit.table import count_text

SOLUTION_SEEDS = range(1, 21)
ANSWER_SEEDS = range(1, 4)
MUTANT_SEEDS = range(1, 3)  # of the launches on which mutants are compared


@dataclass(frozen=True)
class Proof:
    """What came of the proof of one exercise: facts, and faults to repair.

    Survivors are mutants of the solution whose results are wrong and which the check accepts.
    """

    headline: str
    facts: tuple[str, ...]
    faults: tuple[str, ...]
    survivors: tuple[str, ...] = ()

    def __str__(self):
        lines = [*self.facts, *(f"FAULT: {fault}" for fault in self.faults)]
        if self.survivors:
            lines.append("Accepted, though the results are wrong elsewhere; more `sizes` or `random_sizes` may tell:")
            lines += [f"  {survivor}" for survivor in self.survivors]
        return "\n    ".join([self.headline, *(line.replace("\n", "\n      ") for line in lines)])


def write_example(folder: Path) -> None:
    """Write an example of a chapter with an exercise of its own into a folder that is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OwnCourseError(f"{folder} is not empty, and an example overwrites nothing; name a new folder")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def prove_own_course() -> Iterator[Proof]:
    """Prove every exercise of the instructor's folder, one after the other."""
    compile_checks()
    for path in own_sources():
        chapter = read_chapter(path)
        for id in exercise_ids(path.stem):
            yield _Trial(id, path, chapter).prove()
    used = {id.replace("-", "_") for path in own_sources() for id in exercise_ids(path.stem)}
    for path in own_modules():
        if path.stem not in used and "\nEXERCISE = " in path.read_text(encoding="utf-8"):
            fault = "it is in no chapter: write a cell tagged `exercise` and one tagged `check` for it"
            yield Proof(f"exercises/{path.name}", (), (fault,))


def read_answers(path: Path) -> dict[str, tuple[Answer, ...]]:
    """Read the answers in a file by their kind."""
    spec = spec_from_file_location(f"answers_{path.stem}", path)
    assert spec and spec.loader, path
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a new file does
        raise OwnCourseError(f"answers/{path.name} cannot be read: {type(error).__name__}: {error}") from error
    return {kind: tuple(getattr(module, kind, ())) for kind in KINDS}


class _Trial:
    """The proof of one exercise of a chapter."""

    def __init__(self, id: str, path: Path, chapter: Chapter):
        self.rules, self.path, self.chapter = exercise(id), path, chapter
        self.facts: list[str] = []
        self.faults: list[str] = []
        self.survivors: list[str] = []

    def prove(self) -> Proof:
        """Do all of it, as far as the solution is accepted."""
        self._prove_text()
        if not self._prove_launches():
            return self._proof
        self._prove_blank()
        if self._prove_solution():
            answers = self._prove_answers()
            if self.rules.machine != "python":
                self._prove_mistakes(answers)
            self._prove_mutants()
        return self._proof

    @property
    def _proof(self) -> Proof:
        return Proof(self.rules.headline, tuple(self.facts), tuple(self.faults), tuple(self.survivors))

    def _cell(self, notebook: nbformat.NotebookNode, id: str) -> str:
        return next(cell.source for cell in notebook.cells if cell.id == exercise_cell_id(id))

    @cached_property
    def solution(self) -> str:
        return self._cell(self.chapter.solved, self.rules.id)

    @cached_property
    def blank(self) -> str:
        return self._cell(self.chapter.blank, self.rules.id)

    def _define(self, text: str) -> tuple[Any, Unreadable | None]:
        """Read an answer as the grader does, after the setup cells and the solutions before it.

        Return the function, and why it cannot be judged if so.
        """
        reader = AnswerReader([cell.source for cell in self.chapter.solved.cells if is_setup_cell(cell)])
        ids = exercise_ids(self.path.stem)
        for id in ids[: ids.index(self.rules.id)]:
            reader.read(exercise(id), self._cell(self.chapter.solved, id))
        problem = reader.read(self.rules, text)
        return reader.namespace[self.rules.function], problem

    def _judge(self, text: str, seeds: Sequence[int]) -> Iterator[Verdict | Unreadable]:
        """Yield the verdict on an answer with each seed."""
        kernel, problem = self._define(text)
        for seed in seeds:
            try:
                with limit_cpu_time(CPU_S):
                    verdict = problem or judge(self.rules, kernel, seed)
            except TooSlow:
                verdict = Unreadable("too slow", f"The judge took longer than {CPU_S} s of computing over it.")
            yield verdict

    def _prove_text(self):
        rules, text = self.rules, "\n".join(cell.source for cell in self.chapter.blank.cells)
        if rules.task not in text:
            self.faults.append(f"source/{self.path.name} does not give the task: write [](task:{rules.id}) there")
        others = [id for id in exercise_ids(self.path.stem) if exercise(id).function == rules.function]
        if len(others) > 1:
            self.faults.append(f"{' and '.join(others)} ask for the same function, {rules.function}: rename one")
        if not rules.random_sizes:
            self.faults.append("random_sizes is empty, so an answer for the published sizes alone is accepted")
        given = nbformat.writes(make_student_notebook(self.chapter.blank, [self.chapter.name])).encode()
        files = {f"{self.chapter.name}.ipynb": given, **{path.name: path.read_bytes() for path in own_modules()}}
        for id, file in find_leaks(read_solutions(self.path), files):
            if id == rules.id:
                self.faults.append(f"students get the solution in {file}")

    def _prove_launches(self) -> bool:
        """Make what many checks make, the outputs of mistakes too: an error here would leave an answer not graded."""
        kernel, problem = self._define(self.solution)
        try:
            constants = {} if problem else read_constants(self.rules, python_function(kernel))
            for seed in SOLUTION_SEEDS:
                for launch in self.rules.make_launches(seed, **constants):
                    self._require_shapes(launch)
        except Exception as error:  # whatever a new file does
            file = f"exercises/{self.rules.id.replace('-', '_')}.py"
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if Path(frame.filename).parts[-2:] == Path(file).parts]
            where = f"{file}, line {lines[-1]}" if lines else file
            self.faults.append(f"{where}: {type(error).__name__}: {error}")
            return False
        return True

    def _require_shapes(self, launch: Launch | Questions):
        if isinstance(launch, Questions):
            return
        for mistake in launch.mistakes:
            for position, output in mistake.make_outputs().items():
                shape, right = np.shape(output.value), np.shape(launch.outputs[position].value)
                if shape != right:
                    sentence = f"the mistake {mistake.cause!r} makes an output of shape {shape} on {launch.label}"
                    raise ValueError(f"{sentence}, where {right} is right")

    def _prove_blank(self):
        (verdict,) = self._judge(self.blank, SOLUTION_SEEDS[:1])
        if verdict.reason == SOLVED:
            self.faults.append("the blank exercise is accepted")
        else:
            self.facts.append(f"blank: refused, {verdict.reason}")

    def _prove_solution(self) -> bool:
        if self.rules.machine == "cpu":
            compile_tracer()
        start = time.perf_counter()
        for seed, verdict in zip(SOLUTION_SEEDS, self._judge(self.solution, SOLUTION_SEEDS), strict=True):
            if verdict.reason != SOLVED:
                self.faults.append(f"the solution is refused with seed {seed}: {verdict.reason}: {verdict.message}")
                return False
        seconds = (time.perf_counter() - start) / len(SOLUTION_SEEDS)
        self.facts.append(f"solution: accepted with {len(SOLUTION_SEEDS)} seeds, {seconds:.2f} s for a check")
        return True

    def _prove_answers(self) -> list[Answer]:
        """Prove the verdicts on the answers; return those that fit the solution."""
        folder = own_folder()
        assert folder is not None, "a course was named"
        path = folder / "answers" / f"{self.rules.id.replace('-', '_')}.py"
        if not path.is_file():
            self.faults.append(f"answers/{path.name} is not there: write wrong answers, which the check must refuse")
            return []
        answers = [answer for kind, found in read_answers(path).items() for answer in found]
        if all(answer.reason == SOLVED for answer in answers):
            self.faults.append(f"answers/{path.name} has no wrong answer: write some, which the check must refuse")
        fitting = []
        for answer in answers:
            try:
                text = answer.source(self.solution)
            except ValueError as error:
                self.faults.append(str(error))
                continue
            fitting.append(answer)
            if fault := find_wrong_verdict(answer, self._judge(text, ANSWER_SEEDS)):
                self.faults.append(f"the answer {answer.what!r} {fault}")
        right = sum(answer.reason == SOLVED for answer in answers)
        self.facts.append(f"answers: {right} right and {len(answers) - right} wrong")
        return fitting

    def _prove_mistakes(self, answers: Sequence[Answer]):
        launches = make_launches(self.rules, self._define(self.solution)[0])
        causes = {mistake.cause for launch in launches for mistake in launch.mistakes}
        for answer in [answer for answer in answers if answer.mistake]:
            kernel, problem = self._define(answer.source(self.solution))
            fault = problem.message if problem else find_wrong_mistake(self.rules, kernel, answer)
            if fault:
                self.faults.append(f"the answer {answer.what!r} {fault}")
        faults = [*find_unproven_mistakes(launches, answers)]
        faults += find_telling_mistakes(launches, self.solution, self.blank)
        self.faults += [f"the mistake {fault}" for fault in faults]
        self.facts.append(f"usual mistakes: {len(causes)}")

    def _prove_mutants(self):
        solution, _ = self._define(self.solution)
        constants = read_constants(self.rules, python_function(solution))
        launches = []
        for seed in MUTANT_SEEDS:
            try:
                launches += make_other_launches(self.rules, solution, seed)
            except Exception:  # the exercise has no such shapes
                launches += self.rules.make_launches(seed + len(SOLUTION_SEEDS), **constants)
        outcomes = {}
        for seed, mutation in enumerate(mutations(self.solution)):
            kernel, problem = self._define(mutation.source)
            try:
                with limit_cpu_time(CPU_S):
                    outcomes[mutation.what] = False if problem else survives(self.rules, kernel, launches, seed)
            except TooSlow:
                outcomes[mutation.what] = False
        wrong = [outcome for outcome in outcomes.values() if outcome is not None]
        self.survivors = [what for what, outcome in outcomes.items() if outcome]
        refused = len(wrong) - len(self.survivors)
        self.facts.append(f"mutants: {count_text(len(wrong), 'wrong one')} of {len(outcomes)}, {refused} refused")
