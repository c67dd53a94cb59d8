"""Names that a kernel uses but does not define: constants of its module, functions and instructions."""

import ast
import inspect
import sys
from collections.abc import Callable
from textwrap import dedent

from labkit import ptx
from labkit.rebinding import assignments, imports, names_in


def constants(function: Callable) -> list[tuple[int | None, str]]:
    """Return the lines that define a function's constants, and those that these depend on, each with its number.

    Lines of other modules of labkit, from which constants are imported, come first, under the names of their files.

    Parameters
    ----------
    function
        A function of the package. For any other, such as a learner's own, there are none.
    """
    return _constants(sys.modules[function.__module__], _names_read(function)) if _is_in_package(function) else []


def _constants(module, names):
    source = inspect.getsource(module)
    lines, definitions = source.splitlines(), assignments(source, names)
    names_by_module: dict = {}  # names by the module from which they are imported
    for name in sorted(imports(module).keys() & names.union(*map(names_in, definitions))):
        home, original_name = imports(module)[name]
        names_by_module.setdefault(home, set()).add(original_name)
    found = []
    for home, of_home in names_by_module.items():
        if imported_lines := _constants(home, of_home):
            found += [(None, f"# {home.__name__.replace('.', '/')}.py"), *imported_lines, (None, "")]
    own = [(n, lines[n - 1]) for node in definitions for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)]
    return found + own if own else found[:-1]


def helpers(function: Callable) -> list[Callable]:
    """Return the compiled functions of the package that a function calls, and those that these call.

    Instructions in `labkit.ptx` do not count: they are the GPU's.
    """
    found: list[Callable] = []
    if _is_in_package(function):
        for name in sorted(_names_read(function)):
            called = getattr(getattr(sys.modules[function.__module__], name, None), "py_func", None)
            if called is not None and _is_in_package(called) and called is not function:
                found += [called, *helpers(called)]
    return list(dict.fromkeys(found))


def instructions(function: Callable) -> set[str]:
    """Return the names in `labkit.ptx` that a function of the package or its helpers use: "ldmatrix4"."""
    found = set()
    for used_function in (function, *helpers(function)):
        imported = imports(sys.modules[used_function.__module__])
        for node in ast.walk(_tree(used_function)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ptx":
                found.add(node.attr)
            elif isinstance(node, ast.Name) and node.id in imported and imported[node.id][0] is ptx:
                found.add(imported[node.id][1])
    return found


def _is_in_package(function):
    return function.__module__.partition(".")[0] == "labkit"


def _names_read(function):
    """Return every name that a function's source reads, its decorator's included."""
    return names_in(_tree(function))


def _tree(function):
    lines, _ = inspect.getsourcelines(function)
    return ast.parse(dedent("".join(lines)))
