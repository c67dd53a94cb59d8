"""The exercises, students and rules of a grading."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from labkit.exercises import exercise, exercise_ids, known_ids
from labkit.grading.collected import Collected
from labkit.grading.policy import Deadline, LatePolicy


@dataclass(frozen=True)
class Assessment:
    """A teacher's choice of what is graded, and by which rules."""

    students: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of the roster, with its further columns
    points: Mapping[str, float] = field(default_factory=dict)  # by exercise; none: all chapters that were handed in
    collected: Mapping[str, Collected] = field(default_factory=dict)  # by student
    deadline: Deadline | None = None
    by_hand: Path | None = None  # CSV of points that the teacher gives
    assignment: str = ""  # its name
    late_policy: LatePolicy = LatePolicy.BETTER

    def worth(self, id: str) -> float:
        """Return the points of an exercise."""
        return self.points[id] if self.points else exercise(id).points

    @property
    def exercises(self) -> list[str]:
        """The exercises to grade, in the book's order."""
        return [id for id in known_ids() if id in self.points] if self.points else [*exercise_ids()]

    def grades(self, id: str) -> bool:
        """Tell whether an answer to this exercise is graded: any, unless the assignment names its exercises."""
        return not self.points or id in self.points
