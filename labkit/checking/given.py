"""What a chapter gives its exercises: the cells that are run before them."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from labkit import places


def is_setup(cell: Mapping[str, Any]) -> bool:
    """Whether a notebook's cell is one that every exercise of it stands on."""
    return "setup" in cell["metadata"].get("tags", ())


@cache
def setups_of(chapter: str) -> tuple[str, ...]:
    """The text of a chapter's setup cells, by its slug; none where its notebook cannot be read."""
    paths = places.folder("notebooks").glob(f"[0-9][0-9]-{chapter}.ipynb")
    try:
        cells = [cell for path in paths for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
        return tuple("".join(cell["source"]) for cell in cells if is_setup(cell))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # a learner's own notebook may hold anything
        return ()
