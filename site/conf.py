"""Sphinx's settings for the reference of labkit's public functions: `make site` writes it to site/build."""

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
