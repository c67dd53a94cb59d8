"""Sphinx's settings for the reference of labkit's public functions: `make site` writes it to site/build."""

import re
from importlib import import_module
from pathlib import Path

import labkit

project = "labkit"
author = "The labkit authors"
release = labkit.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
templates_path = ["templates"]
exclude_patterns = ["build"]
html_theme = "furo"
napoleon_google_docstring = False
autosummary_ignore_module_all = False
autodoc_default_options = {"members": True, "imported-members": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_preserve_defaults = True
ROOMS = re.findall(r"^   (labkit\.\w+)$", (Path(__file__).parent / "index.rst").read_text(), re.M)


def setup(app):
    """Connect the functions below to Sphinx."""
    app.connect("autodoc-skip-member", leave_out_what_is_imported)
    app.connect("autodoc-process-docstring", keep_the_first_line_whole, priority=400)  # before Napoleon, at 500


def leave_out_what_is_imported(app, what, name, member, skip, options):
    """Leave out what another page describes, and what a module without `__all__` has imported."""
    page = app.env.docname.removeprefix("generated/")
    home = getattr(member, "__module__", None) or page
    if what != "module" or f"{home}.".startswith(f"{page}."):
        return None
    is_exported = name.rpartition(".")[2] in getattr(import_module(page), "__all__", ())
    return True if not is_exported or ".".join(home.split(".")[:2]) in ROOMS else None


def keep_the_first_line_whole(app, what, name, member, options, lines):
    """Keep Napoleon from reading a property's "FLOP: two per element" as a type and its description."""
    if what == "property":
        lines.insert(0, "\\")  # joins the next line in reStructuredText, and has no colon
