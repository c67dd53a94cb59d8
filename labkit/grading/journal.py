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
from labkit.grading.shard import Shard

FILE = "judgements.jsonl"
FILES = "judgements*.jsonl"  # those of shards too


class Journal:
    """The judgements of a folder of grades, of all shards that wrote there; new ones go into one file.

    Parameters
    ----------
    seed
        If None, that of the last run, or a random one.
    shard
        The part of the class that is judged; if None, the whole.

    Raises
    ------
    RosterError
        The folder has grades of other paths, which would be lost, or the shards have no common seed.
    """

    def __init__(self, folder: Path, seed: int | None = None, paths: Iterable[Path] = (), shard: Shard | None = None):
        self.path = folder / (f"judgements-{shard.number}-of-{shard.count}.jsonl" if shard else FILE)
        self.judgements: dict[str, dict] = {}  # by digest
        own_paths, earlier_paths = sorted(str(path.absolute()) for path in paths), None
        seeds: dict[str, int] = {}  # by file
        for path in sorted(folder.glob(FILES)):
            for line in _read_lines(path):
                if path == self.path:
                    earlier_paths = line.get("of", earlier_paths)
                if "seed" in line:
                    seeds[path.name] = line["seed"]
                if "answer" in line:
                    self.judgements[line["answer"]] = line["judgement"]
        self.seed: Any = _choose_seed(folder, seeds, shard) if seed is None else seed
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


def _read_lines(path):
    """Yield the complete lines; the last may have been cut off, or another process is writing it."""
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _choose_seed(folder, seeds, shard):
    """Return the seed of the earlier runs."""
    if len({*seeds.values()}) > 1:
        told = ", ".join(f"{seed} ({name})" for name, seed in seeds.items())
        raise RosterError(f"the judgements in {folder} have several seeds, {told}: choose one with --seed")
    if shard and not seeds:
        raise RosterError("all parts of a class need the same seed: give each the same --seed, such as --seed 20261130")
    return next(iter(seeds.values()), randbits(32))


@cache
def _hash_package() -> str:
    """Hash all of this package and the instructor's own exercises, which decide on judgements."""
    digest = hashlib.sha256()
    for path in [*sorted(places.PACKAGE.rglob("*.py")), *own_modules()]:
        digest.update(path.read_bytes())
    return digest.hexdigest()
