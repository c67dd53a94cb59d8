"""A journal of judgements on disk, with which an interrupted run goes on and only changed answers are judged again."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from secrets import randbits
from typing import Any

from labkit import places
from labkit.exercises.own import own_modules
from labkit.grading.files import printable_path
from labkit.grading.judge import Judgement
from labkit.grading.roster import RosterError

FILE = "judgements.jsonl"


class Journal:
    """The judgements of a folder of grades; the seed is that of its last run unless another one is given.

    Raises
    ------
    RosterError
        The folder has grades of other paths, which would be lost.
    """

    def __init__(self, folder: Path, seed: int | None = None, paths: Iterable[Path] = ()):
        self.path = folder / FILE
        self.judgements: dict[str, dict] = {}  # by digest
        self.seed: Any = seed
        own_paths, earlier_paths = sorted(str(path.absolute()) for path in paths), None
        for line in self._lines():
            earlier_paths = line.get("of", earlier_paths)
            if seed is None:
                self.seed = line.get("seed", self.seed)
            if "answer" in line:
                self.judgements[line["answer"]] = line["judgement"]
        if self.seed is None:
            self.seed = randbits(32)
        if earlier_paths not in (None, own_paths):
            others = ", ".join(map(printable_path, earlier_paths))
            raise RosterError(
                f"{folder} has the grades of {others}: grade the same again, where what was judged stays judged, or "
                "give another folder with --out"
            )
        self._append({"seed": self.seed, "of": own_paths})

    def judgement(self, digest: str) -> Judgement | None:
        """Return the earlier judgement of an answer, if there is one."""
        fields = self.judgements.get(digest)
        return Judgement(**fields) if fields else None

    def add(self, digest: str, judgement: Judgement) -> None:
        """Record a judgement; it is on the disk when this returns."""
        self.judgements[digest] = asdict(judgement)
        self._append({"answer": digest, "judgement": self.judgements[digest]})

    def digest(self, setups: Sequence[str], answers: Mapping[str, str], id: str) -> str:
        """Hash an answer with all that decides on it: seed, rules, and the cells before it."""
        ids = list(answers)
        cells = [[other, answers[other]] for other in ids[: ids.index(id) + 1]]
        content = json.dumps([self.seed, _hash_package(), list(setups), cells])
        return hashlib.sha256(content.encode()).hexdigest()

    def _lines(self):
        """Yield the complete lines; the last may have been cut off."""
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines(keepends=True):
                if line.endswith("\n"):
                    try:
                        yield json.loads(line)
                    except ValueError:
                        continue

    def _append(self, line):
        start = "\n" if self._is_cut_off() else ""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{start}{json.dumps(line)}\n")
            file.flush()
            os.fsync(file.fileno())

    def _is_cut_off(self):
        if not self.path.exists() or not self.path.stat().st_size:
            return False
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() != b"\n"


@cache
def _hash_package() -> str:
    """Hash all of this package and the instructor's own exercises, which decide on judgements."""
    digest = hashlib.sha256()
    for path in [*sorted(places.PACKAGE.rglob("*.py")), *own_modules()]:
        digest.update(path.read_bytes())
    return digest.hexdigest()
