"""The base of every view: one module of JavaScript, one piece of data, three ways to show them.

How a view is made. Python computes everything, once, into JSON-ready `data`; JavaScript only draws.

    def memory(trace, ...):
        data = {"say": ["**12.5%** of ...", ...], "lanes": pack(array), "table": table([...], rows)}
        return View("memory", "Memory: one load of warp 0", data, draw_still)

- "memory" names `static/memory.js`, which defines `const view = {start(ui, data) {...}}` (see base.js).
- `data["say"]` is the sentence, or a list with one for each step: then the view gets its stepping
  controls. `code` and **emphasis** may be marked. The first sentence is the view's text/plain.
- `data["table"]` is the data as rows, under the picture. `data["start"]` is the step shown first.
- `data["counter"]` has a text for each step whose steps are values, with their unit: "64 images". Views without it
  count their steps: "4 / 5".
- NumPy arrays travel by `pack` (base64; rows of lanes by `pack_lanes`) and arrive in JavaScript as typed
  arrays with a `shape`.
- `draw_still(figure, data, step)` draws the same data into a matplotlib Figure: the still picture.

Displaying a view gives the notebook two outputs: a text/html that needs no kernel, and the live widget.
The live one hides the other; where the widget is gone (a reopened or exported notebook) the other shows.
"""

import base64
import html
import io
import json
import re
import uuid
from pathlib import Path
from typing import Any

import numpy as np

STATIC = Path(__file__).parent / "static"

# The light theme of base.css: A blue, B orange, C green for arrays by role, D violet for a fourth thing; hot
# (vermilion) for what a step touches and for errors, and nothing else.
COLOURS = {
    "bg": "#ffffff", "fg": "#1b1f24", "dim": "#5b6570", "line": "#d5dae0", "cell": "#e6eaed",
    "A": "#0072B2", "B": "#E69F00", "C": "#009E73", "D": "#7B3FE4", "hot": "#B83200", "ink": "#24292f",
}  # fmt: skip


class View:
    """A picture of computed data: live widget, self-contained HTML, or still picture.

    Parameters
    ----------
    script
        Stem of the file in `static/` that draws it.
    title
        Heading.
    data
        JSON-ready, with "say" and, if there is one, "table" (see the module's docstring).
    draw_still
        `draw_still(figure, data, step)` draws one step into a matplotlib Figure.
    """

    def __init__(self, script, title, data, draw_still):
        self.script = script
        self.title = title
        self.data = {"title": title, **data}
        self.draw_still = draw_still
        self.id = uuid.uuid4().hex[:12]
        self._widget = None

    @property
    def sentence(self) -> str:
        """The sentence of the step that the view shows first."""
        say = self.data["say"]
        return strip_marks(say if isinstance(say, str) else say[self.data.get("start", 0)])

    @property
    def widget(self):
        """The live widget (one for each view, made when first asked for)."""
        if self._widget is None:
            self._widget = _make_widget(self)
        return self._widget

    def update(self, data):
        """Show new data in place; a live widget gets it in one message."""
        self.data = {"title": self.title, **data}
        if self._widget is not None:
            self._widget.data = self.data

    def handle_message(self, message):
        """Handle what the live widget sent; a view that listens overrides this."""

    def to_html(self) -> str:
        """Return a whole HTML page that needs no kernel and no network."""
        content = self.page_data()
        data = json.dumps(content, allow_nan=False).replace("</", "<\\/")
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            f"<title>{html.escape(strip_marks(self.title))}</title>"
            f'<style>{read_static("base.css")}</style></head><body class="labkit-page">'
            f'<script type="application/json" id="labkit-data">{data}</script>'
            f'<script type="module">{self.page_module(content)}\nlabkitPage("{self.id}");</script></body></html>'
        )

    def page_data(self) -> dict:
        """Data that the page holds; a view that runs its kernel when live adds the results of runs made beforehand."""
        return self.data

    def module(self) -> str:
        """Return the JavaScript of this view: base.js and its own."""
        return read_static("base.js") + read_static(f"{self.script}.js")

    def page_module(self, data: dict) -> str:
        """Return the JavaScript that a page with this data needs."""
        return self.module()

    def save_html(self, path):
        """Write the view as a page that opens anywhere, offline."""
        Path(path).write_text(self.to_html(), encoding="utf-8")

    def save_png(self, path, step=None, dpi=160):
        """Write the view as a still picture (`.svg` in the path gives SVG)."""
        kind = "svg" if str(path).endswith(".svg") else "png"
        self._drawn(step).savefig(path, format=kind, dpi=dpi, bbox_inches="tight", facecolor=COLOURS["bg"])

    def to_svg(self, step=None, size_inches: tuple[float, float] | None = None) -> str:
        """Return the still picture in SVG; dollar signs in it are plain text.

        A size of its own is that of a picture without title, words below and margins, for a page that has the words.
        """
        import matplotlib

        text = io.StringIO()
        style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": self.script, "text.parse_math": False}
        with matplotlib.rc_context(style):
            figure = self._drawn(step, layout=None)
            if size_inches:
                figure.set_size_inches(size_inches)
                figure.suptitle("")
                figure.supxlabel("")
            box: dict[str, Any] = {"bbox_inches": "tight"} if size_inches else {}
            figure.savefig(text, format="svg", facecolor=COLOURS["bg"], metadata={"Date": None, "Creator": None}, **box)
        svg = text.getvalue()
        return svg[svg.index("<svg") :]

    def _drawn(self, step, layout: Any = "constrained"):
        """Return a figure with the still picture of a step; None is the step shown first."""
        from matplotlib.figure import Figure

        say = self.data["say"]
        last = 0 if isinstance(say, str) else len(say) - 1
        step = self.data.get("start", 0) if step is None else step
        if step not in range(last + 1):
            title = strip_marks(self.title)
            raise ValueError(f"`{title}` has the steps 0 to {last}, and no {step}: choose one of them.")
        figure = Figure(layout=layout)
        self.draw_still(figure, self.data, step)
        return figure

    def _ipython_display_(self):
        from IPython.display import display

        page, title = html.escape(self.to_html(), quote=True), html.escape(strip_marks(self.title))
        fallback = (
            f'<iframe data-labkit="{self.id}" data-view="{self.script}" title="{title}" srcdoc="{page}" '
            "onload=\"this.style.height = this.style.height || '30em'\" "
            'style="width:100%;border:0;display:block"></iframe>'  # the page sets its height where it can
        )
        display({"text/plain": self.sentence, "text/html": fallback}, raw=True)
        live: Any = self.widget._repr_mimebundle_()
        bundle = dict(live[0] if isinstance(live, tuple) else live)
        display({**bundle, "text/plain": ""}, raw=True)

    def __repr__(self):
        return self.sentence


def pack(array) -> dict:
    """Return an array as JSON: base64 of the smallest of int8, int16, int32 that holds it, or float32."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind in "iub":
        lowest, highest = (int(array.min()), int(array.max())) if array.size else (0, 0)
        limits = map(np.iinfo, (np.int8, np.int16, np.int32))
        dtype = next(limit.dtype for limit in limits if limit.min <= lowest and highest <= limit.max)
    else:
        dtype = np.float32
    raw = array.astype(np.dtype(dtype).newbyteorder("<")).tobytes()
    return {"b64": base64.b64encode(raw).decode(), "dtype": np.dtype(dtype).name, "shape": list(array.shape)}


def pack_lanes(index) -> dict:
    """Pack rows of lane indices (-1: no access), each as its lowest index and one of few patterns."""
    index = np.asarray(index)
    active = index >= 0
    lowest = np.where(active, index, np.iinfo(np.int32).max).min(axis=1, initial=np.iinfo(np.int32).max)
    relative = np.where(active, index - lowest[:, None], -1).astype(np.int32)
    patterns, which = np.unique(relative.view(np.dtype((np.void, relative.shape[1] * 4))), return_inverse=True)
    patterns = patterns.view(np.int32).reshape(-1, relative.shape[1])
    return {"lowest": pack(lowest), "which": pack(which.ravel()), "patterns": pack(patterns)}


def layout_data(info, offset_bytes: int = 0) -> dict:
    """Return an array's shape, strides and base address for JavaScript; strides, address and offset are in bytes."""
    base = info.base_address + offset_bytes
    return {"shape": list(info.shape), "strides": list(info.strides_bytes), "base": base}


def unpack(packed) -> np.ndarray:
    """Return the array that `pack` or `pack_lanes` packed, for still pictures."""
    if "patterns" in packed:
        rows = unpack(packed["patterns"])[unpack(packed["which"])].astype(int)
        return np.where(rows >= 0, rows + unpack(packed["lowest"])[:, None], -1)
    return np.frombuffer(base64.b64decode(packed["b64"]), packed["dtype"]).reshape(packed["shape"])


def table(columns, rows, by_step=False) -> dict:
    """Return the data behind a picture as a table; with one row per step, its last column is the sentence."""
    return {"columns": list(columns), "rows": [list(row) for row in rows], "byStep": by_step}


def stats_by_step(columns, cells, labels, values) -> dict:
    """Return the numbers to show large at each step, and the table of all steps as data of a view.

    Parameters
    ----------
    columns, cells
        Headings of the table's first columns, and for each step their cells.
    labels, values
        Labels of the numbers, and for each step the numbers.
    """
    rows = [[*first, *numbers] for first, numbers in zip(cells, values, strict=True)]
    return {
        "stats": {"labels": labels, "values": values},
        "table": table([*columns, *labels], rows, by_step=True),
    }


def heading(data, step) -> str:
    """Return title and sentence of a step, for still pictures."""
    say = data["say"] if isinstance(data["say"], str) else data["say"][step]
    return f"{strip_marks(data['title'])}\n{strip_marks(say)}"


def strip_marks(sentence) -> str:
    """Return a sentence without its marks."""
    return re.sub(r"[`]|\*\*", "", sentence)


def read_static(name: str) -> str:
    """Return the text of a file of `static/`."""
    return (STATIC / name).read_text(encoding="utf-8")


def _make_widget(view):
    import anywidget
    import traitlets

    class Widget(anywidget.AnyWidget):
        _esm = view.module()
        _css = read_static("base.css")
        data = traitlets.Dict().tag(sync=True)
        view_id = traitlets.Unicode().tag(sync=True)

    widget = Widget(data=view.data, view_id=view.id)
    widget.on_msg(lambda _, message, buffers: view.handle_message(message))
    return widget
