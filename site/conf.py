"""Sphinx's settings for the book's pages and the reference of its functions: `make site` writes them to site/build."""

import html
import re
from importlib import import_module
from pathlib import Path
from textwrap import shorten

from docutils import nodes

import labkit
from labkit.book.site import write_sources
from labkit.book.site.chapters import NOTE
from labkit.views.shared_page import write_scripts

project = "labkit"
author = "The labkit authors"
release = labkit.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
]
templates_path = ["templates"]
exclude_patterns = ["build", "static", "chapters/contents.md"]
html_theme = "furo"
html_title = "labkit"
html_static_path = ["static"]
html_copy_source = False
html_css_files = ["views/views.css", "book.css"]
html_js_files = [("views/views.js", {"defer": "defer"})]
html_favicon = "static/icon.svg"
html_show_sourcelink = False
html_show_copyright = False
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
nb_code_prompt_show = "Folded code"
nb_code_prompt_hide = "Folded code"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
napoleon_google_docstring = False
autosummary_ignore_module_all = False
autodoc_default_options = {"members": True, "imported-members": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_preserve_defaults = True
ROOMS = re.findall(r"^   (labkit\.\w+)$", (Path(__file__).parent / "reference.rst").read_text(), re.M)


def setup(app):
    """Connect the functions below to Sphinx."""
    app.add_config_value("chapters", "", "env")  # slugs of the chapters to show, for a quick look; all where empty
    app.connect("builder-inited", write_chapters)
    app.connect("html-page-context", describe)
    app.connect("build-finished", name_landmarks)
    app.connect("autodoc-skip-member", leave_out_what_is_imported)
    app.connect("autodoc-process-docstring", keep_the_first_line_whole, priority=400)  # before Napoleon, at 500


def write_chapters(app):
    """Write the chapters' pages, and the scripts that their views share."""
    write_sources(Path(app.srcdir), Path(app.outdir), app.config.chapters.split())
    write_scripts(Path(app.outdir) / "_static" / "views")


# The theme's choice of colours, where a browser keeps nothing for pages too: then it lasts as long as the page.
KEPT_THEME = """
      try { localStorage.setItem("theme", localStorage.getItem("theme") || "auto"); } catch {
        const kept = new Map();
        Object.defineProperty(window, "localStorage", {value: {
          getItem: key => kept.get(key),
          setItem: (key, value) => kept.set(key, value),
          removeItem: key => kept.delete(key),
        }});
      }
      document.body.dataset.theme = localStorage.getItem("theme") || "auto";
""".strip()
# What the theme and the Markdown reader leave out for those who listen to a page.
ADDED = {
    'document.body.dataset.theme = localStorage.getItem("theme") || "auto";': KEPT_THEME,
    'role="heading"><span class="caption-text"': 'role="heading" aria-level="2"><span class="caption-text"',
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="chapters">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="this page">',
    '<aside class="toc-drawer no-toc">': '<aside class="toc-drawer no-toc" aria-label="this page">',
    '<div id="search-results"></div>': '<h1>Search</h1><div id="search-results"></div>',
    '<th class="head"></th>': "<td></td>",
    '<th class="head"><p></p></th>': "<td></td>",
}


def name_landmarks(app, exception):
    """Name landmarks, give headings of lists their level, and make empty heads of columns plain cells."""
    for path in () if exception else Path(app.outdir).rglob("*.html"):
        text = before = path.read_text(encoding="utf-8")
        for found, added in ADDED.items():
            text = text.replace(found, added)
        if text != before:
            path.write_text(text, encoding="utf-8")


def describe(app, page, template, context, doctree):
    """Give a page the description that search engines show: its first paragraph of some length."""
    paragraphs = [node.astext() for node in doctree.findall(nodes.paragraph)] if doctree else []
    note = NOTE.partition(".")[0]
    text = next((each for each in paragraphs if len(each) > 80 and note not in each), None)
    if text:
        words = html.escape(shorten(text, 160, placeholder="…"))
        context["metatags"] = f'{context.get("metatags", "")}<meta name="description" content="{words}">'


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
