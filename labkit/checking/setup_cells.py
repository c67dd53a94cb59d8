"""The setup cells of a chapter, which run before its exercises."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from labkit import places


def is_setup_cell(cell: Mapping[str, Any]) -> bool:
    """Tell whether a notebook's cell has the tag `setup`: every exercise of the chapter needs it."""
    return "setup" in cell["metadata"].get("tags", ())


@cache
def read_setup_cells(chapter: str) -> tuple[str, ...]:
    """Return the text of a chapter's setup cells, by the chapter's slug; () if its notebook cannot be read."""
    paths = places.folder("notebooks").glob(f"[0-9][0-9]-{chapter}.ipynb")
    try:
        cells = [cell for path in paths for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
        return tuple("".join(cell["source"]) for cell in cells if is_setup_cell(cell))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # a learner's own notebook may hold anything
        return ()
