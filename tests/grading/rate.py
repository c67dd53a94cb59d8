"""Measures how fast a class is graded: `PYTHONPATH=tests/exercises python tests/grading/rate.py [COPIES] [WORKERS]`.

A submission is the notebook of a chapter of 02 to 17, a third of its answers wrong. Nothing else should run meanwhile.
"""

import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from answers import variants
from handed_in import hand_in, solutions

from labkit.exercises import exercise_ids
from labkit.exercises.contents import book_contents
from labkit.grading.grade import grade
from labkit.grading.resources import count_kernels

CLASSES = (30, 300, 3000)
CHAPTERS = [
    chapter.slug
    for chapter in book_contents().chapters
    if "02" <= chapter.name[:2] <= "17" and exercise_ids(chapter.slug)
]


def write_class(folder: Path, copies: int) -> int:
    """Write so many submissions of each chapter; return their number."""
    for chapter in CHAPTERS:
        texts = solutions(chapter)
        for n, id in enumerate(texts):
            if n % 3 == 1 and variants(id):
                texts[id] = variants(id)[0].source(texts[id])
        for copy in range(copies):  # each with a text of its own, so that the journal knows none
            cells = {f"e{n}": f"# {copy}\n{text}" for n, text in enumerate(texts.values(), 1)}
            hand_in(folder / f"{chapter}-{copy}" / "a.ipynb", chapter, **cells)
    return copies * len(CHAPTERS)


def watch_memory(peaks: list[int]) -> None:
    """Note the greatest memory of this process's children together, ten times a second."""
    while True:
        used = 0
        for process in psutil.Process().children(recursive=True):
            try:
                used += process.memory_info().rss
            except psutil.Error:
                continue
        peaks[0] = max(peaks[0], used)
        time.sleep(0.1)


def main(copies: int = 4, workers: int | None = None) -> None:
    workers, peaks = workers or count_kernels(), [0]
    threading.Thread(target=watch_memory, args=[peaks], daemon=True).start()
    with TemporaryDirectory() as folder:
        count = write_class(Path(folder) / "class", copies)
        start_s = time.perf_counter()
        rows = grade([Path(folder) / "class"], Path(folder) / "grades", seed=1, workers=workers)
        time_s = time.perf_counter() - start_s
    wrong, memory_gb = sum(row.points == 0 for row in rows), peaks[0] / workers / 2**30
    print(f"{count} submissions, {len(rows)} answers, {wrong} wrong: {time_s:.1f} s with {workers} kernels at a time,")
    print(f"{count / time_s:.2f} submissions per second, {memory_gb:.1f} GB per kernel with its pytest")
    for students in CLASSES:
        print(f"{students} notebooks take {students * time_s / count / 60:.1f} minutes")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
