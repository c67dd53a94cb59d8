"""Still pictures of views that a notebook stored, from script and data alone, for readers without JavaScript."""

import json
import re
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path

from labkit.views.base import COLOURS, STATIC, View

# The modules whose views have other names than they, and what draws these.
_DRAWN_BY = {
    "memory": ("memory", "draw_memory_still"),
    "banks": ("memory", "draw_banks_still"),
}
WITHOUT = {"predict", "compare"}  # a question has no picture, and the picture of an answer would give it away


def write_still(script: str, data: dict, folder: Path) -> str | None:
    """Write the picture that a view shows first to `folder`, unless it is there; return the file's name.

    None where the view has no picture: a question, an answer, and a playground none of whose runs drew one.
    """
    if script == "playground":
        shown = _first_run(data)["shown"]
        return shown and write_still(shown["script"], shown["data"], folder)
    if script in WITHOUT:
        return None
    key = json.dumps([script, data]).encode() + _views()
    name = sha256(key).hexdigest()[:16] + (".svg" if script == "chart" else ".png")
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if script == "chart":
            path.write_text(_coloured(data["charts"]["wide"]), encoding="utf-8")
        else:
            View(script, data["title"], data, _function(script)).save_png(path, dpi=100)
    return name


@cache
def _views():
    """Return a digest of what draws: a picture is drawn anew when that has changed."""
    return sha256(b"".join(path.read_bytes() for path in sorted(STATIC.parent.glob("*.py")))).digest()


def _first_run(data):
    """Return the state of a playground that its page shows first."""
    runs = [state for state in data["kept"] if state["positions"] == data["positions"]]
    return runs[0] if runs else data


def _function(script):
    module, name = _DRAWN_BY.get(script, (script, "draw_still"))
    return getattr(import_module(f"labkit.views.{module}"), name)


def _coloured(svg):
    """Return a chart with the colours of the light theme in place of the page's variables."""
    return re.sub(r"var\(--([\w-]+)\)", lambda found: COLOURS["bg" if found[1] == "card" else found[1]], svg)
