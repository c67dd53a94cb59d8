"""The `course.json` of a release: the contents of an assignment, for handing in and grading."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from labkit.exercises import known_ids
from labkit.exercises.contents import current_id
from labkit.grading.roster import RosterError

FILE = "course.json"


@dataclass(frozen=True)
class Course:
    """An assignment: its name, the names of its chapters, and the points of its exercises by id."""

    assignment: str
    chapters: tuple[str, ...]
    points: Mapping[str, float]
    work_log: bool = False  # students' checks are kept, and handed in with the notebooks

    @property
    def out_of(self) -> float:
        """The sum of all points."""
        return sum(self.points.values())

    def to_json(self) -> str:
        """Return the text of `course.json`."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> "Course":
        """Read the course from a file of this edition or an earlier one."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            points = {current_id(id): worth for id, worth in content["points"].items()}
            keeps_log = content.get("work_log") is True
            course = cls(str(content["assignment"]), tuple(content["chapters"]), points, keeps_log)
            if not all(isinstance(worth, int | float) for worth in course.points.values()):
                raise TypeError("its points are not numbers")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RosterError(f"{path} is not the `{FILE}` of a release: {error}") from error
        if unknown := sorted(course.points.keys() - {*known_ids()}):
            raise RosterError(f"{path} names exercises that are not in this book: {', '.join(unknown)}")
        return course
