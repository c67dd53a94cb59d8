"""Things handed in that are no notebook, or one with more in it: by name, what makes it in a student's folder.

Each gets the folder and a solved chapter as JSON. `HARMLESS` are odd and right: their answers earn their points.
"""

import json
import os
from pathlib import Path


def _write(folder: Path, content: bytes | str, name="02.ipynb"):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def _changed(**top):
    return lambda folder, text: _write(folder, json.dumps(json.loads(text) | top))


def _cells(change):
    def make(folder, text):
        notebook = json.loads(text)
        notebook["cells"] = change(notebook["cells"])
        _write(folder, json.dumps(notebook))

    return make


def _emptied(cell, **more):
    """The cell with an answer that earns nothing, if it is one."""
    return cell | ({"source": "print('solved')"} | more if cell["id"].startswith("exercise") else more)


def _tagged(tag):
    return _cells(lambda cells: [_emptied(cell, metadata={"tags": [tag]}, outputs=[]) for cell in cells])


def _beside(name, content):
    """A file that a grader might run, beside a notebook that earns nothing."""

    def make(folder, text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _write(folder, content, name)
        _tagged("exercise")(folder, text)

    return make


def _link(target):
    return lambda folder, text: (folder / "02.ipynb").symlink_to(target)


def _named(name):
    def make(folder, text):
        handle = os.open(os.fsencode(folder) + b"/" + name, os.O_CREAT | os.O_WRONLY)
        os.write(handle, b"{}")
        os.close(handle)

    return make


def _bomb(folder, text):
    with (folder / "02.ipynb").open("wb") as file:
        file.truncate(1 << 40)


def _deep(folder, text):
    deep = folder.joinpath(*["d"] * 60)
    deep.mkdir(parents=True)
    _write(deep, text)


def _closed(mode, name):
    """A file or folder with these permissions, which mean nothing to root: it holds nothing either."""

    def made(folder, text):
        (folder / "inside").mkdir()
        _write(folder / "inside", '{"cells": []}')
        (folder / name).chmod(mode)

    return made


def _loop(folder, text):
    (folder / "again").symlink_to(folder)
    (folder / "all").symlink_to(folder.parent)
    _write(folder, "{}")


EVIL = "open('$MARK', 'w')\nprint('solved')\n"
HOSTILE = {
    "link to the secret": _link("$SECRET"),
    "link to a neighbour": _link("../a-honest/02.ipynb"),
    "link to a device": _link("/dev/zero"),
    "link to itself": _link("02.ipynb"),
    "links in a circle": _loop,
    "fifo": lambda folder, text: os.mkfifo(folder / "02.ipynb"),
    "folder": lambda folder, text: (folder / "02.ipynb").mkdir(),
    "terabyte": _bomb,
    "file that nobody may read": _closed(0, "inside/02.ipynb"),
    "folder that nobody may open": _closed(0, "inside"),
    "folder that may only be listed": _closed(0o444, "inside"),
    "deep folders": _deep,
    "empty": lambda folder, text: _write(folder, b""),
    "picture": lambda folder, text: _write(folder, b"\x89PNG\r\n\x1a\n\xff\xfe\0\0"),
    "half a notebook": lambda folder, text: _write(folder, text[: len(text) // 2]),
    "deep JSON": lambda folder, text: _write(folder, "[" * 200_000),
    "deep cells": lambda folder, text: _write(folder, '{"cells": ' + '[{"a": ' * 50_000),
    "large number": lambda folder, text: _write(folder, '{"cells": [' + "9" * 100_000 + "]}"),
    "not a number": lambda folder, text: _write(folder, '{"cells": NaN, "metadata": Infinity}'),
    "list": lambda folder, text: _write(folder, "[]"),
    "cells of all kinds": lambda folder, text: _write(folder, '{"cells": [null, 1, "a", [], {}, {"cell_type": []}]}'),
    "ids of all kinds": _cells(lambda cells: [_emptied(cell) | {"id": [{}]} for cell in cells]),
    "sources of all kinds": _cells(lambda cells: [cell | {"source": {"a": [1]}} for cell in cells]),
    "many cells": lambda folder, text: _write(folder, '{"cells": [' + ",".join(["{}"] * 100_000) + "]}"),
    "Latin-1": lambda folder, text: _write(folder, (text[:-1] + ', "by": "Ad\u00e9le"}').encode("latin-1")),
    "conflict markers": lambda folder, text: _write(folder, f"<<<<<<< HEAD\n{text}\n=======\n{text}\n>>>>>>> main\n"),
    "escape in the name": _named(b"\x1b[2J\x1b[31m.ipynb"),
    "newline in the name": _named(b"a\nann: 10 of 10 points.ipynb"),
    "no text in the name": _named(b"\xff\xfe\x80.ipynb"),
    "other direction in the name": _named("\u202eipynb.02.ipynb".encode()),
    "markup in the name": _named(b"<img src=x onerror=alert(1)>`|`=1.ipynb"),
    "formula in the name": _named(b"=HYPERLINK(1).ipynb"),
    "options in the name": _named(b"--seed=1.ipynb"),
    "skipped by tag": _tagged("nbval-skip"),
    "ignored by tag": _tagged("nbval-ignore-output"),
    "may raise by tag": _tagged("raises-exception"),
    "checks rewritten": _cells(lambda cells: [_emptied(cell, source="print('solved')") for cell in cells]),
    "solved in its outputs": _cells(
        lambda cells: [
            _emptied(c, outputs=[{"output_type": "stream", "name": "stdout", "text": "solved\n"}], execution_count=1)
            for c in cells
        ]
    ),
    "all answers twice": _cells(lambda cells: [c for cell in cells for c in (cell, _emptied(cell))]),
    "conftest beside it": _beside("conftest.py", EVIL),
    "pytest.ini beside it": _beside("pytest.ini", "[pytest]\naddopts = -p evil\n"),
    "plugin beside it": _beside("evil.py", EVIL),
    "package beside it": _beside("labkit/__init__.py", EVIL),
    "sitecustomize beside it": _beside("sitecustomize.py", EVIL),
    "ipython startup beside it": _beside(".ipython/profile_default/startup/00.py", EVIL),
    "judgements beside it": _beside("judgements.jsonl", '{"seed": 1}\n{"answer": "a", "judgement": {}}\n'),
    "ledger beside it": _beside("collected.json", '[{"student": "mallory", "committed": "1970-01-01T00:00:00Z"}]'),
    "evil kernel": lambda folder, text: _cells(lambda cells: [_emptied(cell) for cell in cells])(
        folder,
        json.dumps(json.loads(text) | {"metadata": {"kernelspec": {"name": "evil", "argv": ["touch", "$MARK"]}}}),
    ),
}
HARMLESS = {
    "UTF-16": lambda folder, text: _write(folder, text.encode("utf-16")),
    "UTF-32 without a mark": lambda folder, text: _write(folder, text.encode("utf-32-le")),
    "byte order mark": lambda folder, text: _write(folder, b"\xef\xbb\xbf" + text.encode()),
    "other line ends": lambda folder, text: _write(
        folder, json.dumps(json.loads(text), indent=1).replace("\n", "\r\n")
    ),
    "no metadata": _changed(metadata=None),
    "metadata of all kinds": _changed(metadata={"labkit": [1], "kernelspec": 3}, nbformat="four", nbformat_minor=None),
    "ids lost": _cells(lambda cells: [{key: cell[key] for key in cell if key != "id"} for cell in cells]),
    "all cells twice": _cells(lambda cells: cells + cells),
    "upside down": _cells(lambda cells: cells[::-1]),
    "capital suffix": lambda folder, text: _write(folder, text, "02.IPYNB"),
    "keys given twice": lambda folder, text: _write(folder, '{"cells": [], ' + text[1:]),
}
