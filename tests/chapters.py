"""The chapters whose cells run kernels, and a run of all their cells."""

import json
import linecache
from pathlib import Path

from labkit.places import folder

CHAPTERS = [
    path
    for path in sorted(folder("notebooks").glob("solutions/*.ipynb"))
    if "cuda.jit" in path.read_text(encoding="utf-8")
]


def run_cells(chapter: Path):
    """Runs the chapter's code, with its exercises solved."""
    names = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(chapter.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            text, where = "".join(cell["source"]), f"<{chapter.stem} {number}>"
            linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
            exec(compile(text, where, "exec"), names)
