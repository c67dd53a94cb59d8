"""Names outside a kernel that its source may use, and their meaning in the kernel language."""

import ast
import builtins
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from labkit.simulator.language import BUILTINS, MODULES, SUBMODULES
from labkit.simulator.reading.trusted import trusted
from labkit.simulator.seam import types


def language_path(value) -> str | None:
    """Return the name in the kernel language of a captured value, or None."""
    if isinstance(value, ModuleType):
        return MODULES.get(value.__name__) if type(value.__name__) is str else None
    if isinstance(value, types.Type):
        return f"numba.{'boolean' if value == types.boolean else value.name}"
    if isinstance(value, type) and issubclass(value, np.generic):
        return f"np.{np.dtype(value).name}" if value is not np.bool_ else "np.bool_"
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if type(module) is not str or type(name) is not str:
        return None
    if module in MODULES:
        return f"{MODULES[module]}.{name}"
    if name in BUILTINS and value is getattr(builtins, name):
        return name
    return None


def value_outside(node: ast.expr, names: dict[str, Any]):
    """Return the value of a name, or of a module's attribute, before the kernel runs; None if nothing is known.

    No code of a module runs: its names are looked up in its dictionary, and those with two underscores are ignored.
    """
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if not isinstance(node, ast.Attribute) or node.attr.startswith("__"):
        return None
    module = value_outside(node.value, names)
    if type(module) is not ModuleType:
        return None
    submodule = SUBMODULES.get(f"{language_path(module)}.{node.attr}")
    return import_module(submodule) if submodule else trusted(vars(module).get(node.attr))  # of a known type only
