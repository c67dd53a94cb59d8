"""What was judged, on disk as it comes: an interrupted run goes on, and only answers that changed are judged anew."""

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
from labkit.grading.files import printable_path
from labkit.grading.judge import Judgement
from labkit.grading.roster import RosterError

FILE = "judgements.jsonl"


class Journal:
    """The judgements of a folder of grades; the seed is that of its last run unless another one is given.

    Raises
    ------
    RosterError
        The folder has the grades of other work than `of`, which would be lost.
    """

    def __init__(self, folder: Path, seed: int | None = None, of: Iterable[Path] = ()):
        self.path = folder / FILE
        self.known: dict[str, dict] = {}
        self.seed: Any = seed
        work, before = sorted(str(path.absolute()) for path in of), None
        for line in self._lines():
            before = line.get("of", before)
            if seed is None:
                self.seed = line.get("seed", self.seed)
            if "answer" in line:
                self.known[line["answer"]] = line
        if self.seed is None:
            self.seed = randbits(32)
        if before not in (None, work):
            raise RosterError(
                f"{folder} has the grades of {', '.join(map(printable_path, before))}: grade the same again, where what was "
                "judged stays judged, or give another folder with --out"
            )
        self._append({"seed": self.seed, "of": work})

    def judgement(self, digest: str) -> Judgement | None:
        """What was said of an answer before."""
        line = self.known.get(digest)
        return Judgement(**line["judgement"]) if line else None

    def add(self, digest: str, judgement: Judgement) -> None:
        """Keep a judgement; it is on the disk when this returns."""
        line = {"answer": digest, "judgement": asdict(judgement)}
        self.known[digest] = line
        self._append(line)

    def digest(self, setups: Sequence[str], answers: Mapping[str, str], id: str) -> str:
        """Stands for an answer with all that decides on it: seed, rules, and what the cells before it define."""
        ids = list(answers)
        read = [[other, answers[other]] for other in ids[: ids.index(id) + 1]]
        return hashlib.sha256(json.dumps([self.seed, _hash_package(), list(setups), read]).encode()).hexdigest()

    def _lines(self):
        """The whole lines; the last may have been cut off."""
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
    """Changes with whatever could change a judgement: all of this package."""
    digest = hashlib.sha256()
    for path in sorted(places.PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
