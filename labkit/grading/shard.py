"""One of several parts of a class, each of which another machine judges."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from labkit.grading.trusted import Task


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read `2/8`; raises ValueError, with a sentence, on anything else."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"{text!r} is no part of a class: write --shard 2/8 for the second of eight")
        return cls(int(found[1]), int(found[2]))

    def __str__(self):
        return f"{self.number}/{self.count}"

    def take(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the tasks of this part: each count-th of every chapter, for chapters differ in work."""
        return sorted(tasks, key=lambda task: (task.chapter, task.file))[self.number - 1 :: self.count]
