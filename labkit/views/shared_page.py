"""Views as parts of one page: their data in the page, their JavaScript in files that all pages share.

A view's own page (`View.to_html`) is whole, which a notebook needs. A page with twenty views would hold base.js twenty
times; a book's pages share it.
"""

import base64
import html
import json
import re
import zlib
from pathlib import Path

from labkit.views.base import read_static, strip_marks
from labkit.views.playground import INNER_SCRIPTS

_FRAME = re.compile(r'<iframe data-labkit="\w+" data-view="(\w+)" .*?srcdoc="(.*?)" .*?</iframe>', re.S)
_DATA = re.compile(r'<script type="application/json" id="labkit-data">(.*?)</script>', re.S)
_PACKED_FROM = 8_000  # characters of data: below, packing saves little


def read_frame(text: str) -> tuple[str, dict] | None:
    """Return script and data of the view that a notebook's HTML output shows; None if it shows no view."""
    frame = _FRAME.search(text)
    if frame is None:
        return None
    data = _DATA.search(html.unescape(frame[2]))
    assert data is not None, "a view's page holds its data"
    return frame[1], json.loads(data[1])


def mount_point(script: str, data: dict, still_picture: str | None = None) -> str:
    """Return the HTML of a view in a page of several; `views.js` of `write_scripts` brings it to life.

    Parameters
    ----------
    script, data
        Of the view.
    still_picture
        Address of a picture, which is loaded and shown where there is no JavaScript.
    """
    say = data["say"] if isinstance(data["say"], str) else data["say"][data.get("start", 0)]
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    title, sentence = f"<b>{_marked(data['title'])}</b>", _marked(say)
    still = f"<p class='labkit-still'>{title}<br>{sentence}</p>"
    if still_picture:
        alt = f"still picture: {strip_marks(data['title'])}"
        still += f'<noscript><img src="{still_picture}" alt="{html.escape(alt)}"></noscript>'
    if "answer" in data:  # it is kept back until the reader has guessed
        still = f"<details class='labkit-still'><summary>{title}</summary>{sentence}</details>"
    packed = "" if len(text) < _PACKED_FROM else " data-packed"
    held = f'<script type="application/json"{packed}>{_deflated(text) if packed else text}</script>'
    return f'<div class="labkit-host" data-view="{script}">{still}{held}</div>'


def write_scripts(folder: Path) -> None:
    """Write `views.js` and `views.css`, which every page loads; no module, since pages are read from a disk too."""
    views = [f"{name}: {_view(name)}" for name in INNER_SCRIPTS]
    parts = [
        read_static("base.js").replace("export default", "const labkitWidget ="),
        "const inner = {\n" + ",\n".join(views) + "\n};",
        f"const playground = {_view('playground')};",
        read_static("page.js"),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    script = "\n".join(parts)
    (folder / "views.js").write_text(f"(() => {{\n{script}\n}})();\n", encoding="utf-8")
    (folder / "views.css").write_text(read_static("base.css"), encoding="utf-8")


def _deflated(text: str) -> str:
    """Return text as base64 of its raw deflate stream (RFC 1951), which a browser's DecompressionStream reads."""
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(text.encode()) + deflate.flush()).decode()


def _view(name: str) -> str:
    return "(() => {\n" + read_static(f"{name}.js") + "\nreturn view;\n})()"


def _marked(sentence: str) -> str:
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(sentence))
    return re.sub(r"\*\*([^*]*)\*\*", r"<b>\1</b>", text)
