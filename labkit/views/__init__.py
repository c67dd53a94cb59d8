"""Views of a Trace: each is a live widget, a page that needs no kernel, and a still picture (see base.py)."""
