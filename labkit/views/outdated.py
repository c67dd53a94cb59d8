"""A picture that is older than its code says so: after each cell of a notebook its kernels are compared."""

import weakref
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from labkit.simulator.reading.source import read_source
from labkit.views.base import View

P = ParamSpec("P")
R = TypeVar("R")


def remembers_kernels(make: Callable[P, R]) -> Callable[P, R]:
    """Have the views that a function makes say in a notebook when a kernel that they show was edited."""

    @wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> R:
        view = make(*args, **options)
        if isinstance(view, View):
            _watch(view, dict(_kernels([*args, *options.values()])))
        return view

    return made


def notebook_shell() -> Any:
    """Return the notebook's shell; None outside of a notebook."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()


def after_each_cell(view: View, look: Callable[[Any], None]) -> None:
    """Call `look(view)` after each cell of the notebook, as long as the view exists."""
    events, reference = getattr(notebook_shell(), "events", None), weakref.ref(view)
    if events is None:
        return

    def call(*_):
        found = reference()
        if found is None:
            events.unregister("post_run_cell", call)
        else:
            look(found)

    events.register("post_run_cell", call)


def _watch(view: View, kernels: dict[str, str]) -> None:
    def look(found: View) -> None:
        names = " and ".join(f"`{name}`" for name, text in kernels.items() if _newest(name, text) != text)
        if names != found.data.get("outdated", ""):
            found.update({**found.data, "outdated": names})

    if kernels:
        after_each_cell(view, look)


def _kernels(values) -> Iterator[tuple[str, str]]:
    """Yield name and source of the kernels whose runs these are, where a cell defined them; of runs in lists too."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from _kernels(value)
        elif isinstance(value, dict):
            yield from _kernels(value.values())
        elif hasattr(value, "kernel") and hasattr(value, "source") and not Path(value.filename).is_file():
            yield value.kernel, value.source  # of a cell; what a file holds stays what it is


def _newest(name, text):
    """Return the source of the notebook's kernel of that name; `text` where there is none, or it cannot be read."""
    found = getattr(notebook_shell(), "user_ns", {}).get(name)
    function = getattr(found, "py_func", found)
    if not isinstance(function, FunctionType):
        return text
    try:
        return read_source(function).text
    except Exception:  # what cannot be read is told where it runs
        return text
