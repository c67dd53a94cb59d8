"""Chapters as pages: solutions left out, views alive in the page, folded cells a click away."""

import re
from copy import deepcopy
from pathlib import Path

import nbformat

from labkit.views.shared_page import mount_point, read_frame
from labkit.views.stored_still import write_still

STILLS = "_static/views/stills"  # in the site: still pictures of views
_LINK = re.compile(r'href="(\d\d-[\w-]+)\.ipynb')  # from chapter to chapter
NOTE = (
    "These pages show a finished run: pictures work, cells do not run here."
    " [Run the chapter yourself](../index.md#run-it-on-your-own-computer) to change its code and to check exercises."
)
_WIDGET = "application/vnd.jupyter.widget-view+json"


def page(executed: nbformat.NotebookNode, blank: nbformat.NotebookNode, stills: Path) -> nbformat.NotebookNode:
    """Return the notebook that a page shows: the learner's cells, with the outputs of the solved ones.

    Cells of exercises and their checks show no output, which would give the solution away. Still pictures of the views
    are written to `stills`, in the site's folder STILLS.
    """
    ran = {cell.id: cell for cell in executed.cells}
    notebook = deepcopy(blank)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            cell.metadata["tags"] = [*tags, "hide-input"]
        if cell.cell_type == "code" and not {"exercise", "check"} & set(tags):
            cell.outputs = [kept for output in ran[cell.id].outputs if (kept := _shown(output, stills))]
    if any(cell.cell_type == "code" for cell in notebook.cells):
        notebook.cells[0].source = _with_note(notebook.cells[0].source)
    notebook.metadata["kernelspec"] = executed.metadata["kernelspec"]
    return notebook


def write_page(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write a page's notebook unless the file is the same: Sphinx reads anew what is newer."""
    text = nbformat.writes(notebook)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _with_note(text):
    """Return the first cell's text with a note below the title, or behind the line in italics that follows it."""
    title, _, rest = text.partition("\n\n")
    first, _, others = rest.partition("\n\n")
    parts = [f"{first} {NOTE}", others] if first.startswith("*") and first.endswith("*") else [NOTE, rest]
    return "\n\n".join(part for part in [title, *parts] if part)


def _shown(output, stills):
    """Return an output as a page shows it; None for a live widget, whose still page comes before it."""
    data = output.get("data", {})
    if _WIDGET in data:
        return None
    if "text/html" in data and (view := read_frame(data["text/html"])):
        name = write_still(*view, stills)
        mounted = mount_point(*view, name and f"../{STILLS}/{name}")
        return nbformat.v4.new_output("display_data", {"text/html": mounted})
    if "text/html" in data:
        data["text/html"] = _LINK.sub(r'href="\1.html', data["text/html"])
    return output
