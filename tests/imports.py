"""Which modules of labkit and of its tests import which, read from their text."""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent
STEP = "s[0-9][0-9]_*.py"


def modules() -> list[Path]:
    return sorted([*(ROOT / "labkit").rglob("*.py"), *(ROOT / "tests").rglob("*.py")])


@cache
def imported(path: Path) -> frozenset[Path]:
    """The files that a module imports itself, and for a package the steps of its ladders, which it discovers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {_file(name, path) for name in _names(tree, path)} - {None, path}
    if path.name == "__init__.py" and path.is_relative_to(ROOT / "labkit"):
        found |= {*path.parent.glob(STEP)} | {one.parent / "__init__.py" for one in path.parent.glob(f"*/{STEP}")}
    return frozenset(found)


def _names(tree, path):
    """Dotted names that a module imports, or that it takes from a package that loads them when they are asked for."""
    nodes, bound = [*ast.walk(tree)], {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
                name = alias.asname or alias.name.split(".")[0]
                bound[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom):
            parents = path.parent.relative_to(ROOT).parts
            base = parents[: len(parents) + 1 - node.level] if node.level else ()
            origin = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                yield f"{origin}.{alias.name}"
                bound[alias.asname or alias.name] = f"{origin}.{alias.name}"
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
            yield f"{bound[node.value.id]}.{node.attr}"


def _file(name, path):
    """The file of a module, or of a name within one, as seen from a file that imports it."""
    parts = name.split(".")
    if parts[0] not in ("labkit", "tests"):  # a helper of the tests
        near = [folder for folder in path.parents if folder.is_relative_to(ROOT / "tests")]
        return next((file for folder in near if (file := module_file(folder, *parts)) is not None), None)
    file = module_file(ROOT, *parts)
    if file is not None and file.name == "__init__.py":
        inner = parts[len(file.parent.relative_to(ROOT).parts) :]
        origin = _passed_on(file).get(inner[0]) if inner else None
        if origin is not None and file != path:
            return _file(origin, file)
    return file


@cache
def module_file(folder, *parts):
    """The file of the longest part of a dotted name that is a module under a folder."""
    for end in range(len(parts), 0, -1):
        place = folder.joinpath(*parts[:end])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None


@cache
def _passed_on(package: Path) -> dict[str, str]:
    """Names that a package has from its modules, also those that it loads when they are asked for."""
    dotted = ".".join(package.parent.relative_to(ROOT).parts)
    try:
        places = getattr(import_module(dotted), "_PLACES", {})
    except Exception:  # the change may have broken it
        places = {}
    nodes = ast.walk(ast.parse(package.read_text(encoding="utf-8")))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("labkit")]
    direct = {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    return direct | {name: place.partition(":")[0] for name, place in places.items()}


def distances(changed: set[Path]) -> dict[Path, int]:
    """How many imports lie between a module and the nearest of some files; without those that use none of them."""
    users = {}
    for path in modules():
        for other in imported(path):
            users.setdefault(other, set()).add(path)
    found, border = dict.fromkeys(changed, 0), {*changed}
    while border:
        border = {user for path in border for user in users.get(path, ())} - found.keys()
        found |= dict.fromkeys(border, 1 + max(found.values(), default=0))
    return found
