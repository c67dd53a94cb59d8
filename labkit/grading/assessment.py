"""What a teacher wants graded, by which rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from labkit.exercises import exercise, exercise_ids
from labkit.grading.collected import Collected
from labkit.grading.policy import Deadline


@dataclass(frozen=True)
class Assessment:
    """What a teacher wants graded: `points` of the exercises of an `assignment`, or none for all chapters handed in.

    `students` are those of the roster, each with what its further columns hold.
    """

    students: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    points: Mapping[str, float] = field(default_factory=dict)
    collected: Mapping[str, Collected] = field(default_factory=dict)
    deadline: Deadline | None = None
    by_hand: Path | None = None
    assignment: str = ""

    def worth(self, id: str) -> float:
        """The points of an exercise."""
        return self.points[id] if self.points else exercise(id).points

    @property
    def exercises(self) -> list[str]:
        """The exercises to grade, in the book's order."""
        return [id for id in exercise_ids() if id in self.points or not self.points]
