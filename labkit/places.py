"""Paths of the book's files: beside the package in a checkout, inside it in an installed wheel."""

from pathlib import Path
from pkgutil import iter_modules

import labkit

PACKAGE = Path(__file__).parent
STEPS = "s[0-9][0-9]_*.py"  # a ladder's files
OWN_COURSE = "LABKIT_COURSE"  # variable of the environment: the folder of an instructor's own chapters and exercises
CHECKOUT = PACKAGE.parent if (PACKAGE.parent / "pyproject.toml").is_file() else None


def folder(name: str) -> Path:
    """Return the path of the folder `notebooks` or `kernels`."""
    return (CHECKOUT or PACKAGE) / name


def operations() -> list[str]:
    """Return the operations of labkit: its packages with steps."""
    packages = {
        found.name: Path(found.module_finder.path, found.name)  # pyright: ignore[reportAttributeAccessIssue] - of a folder
        for found in iter_modules(labkit.__path__)
    }
    patterns = STEPS, f"*/{STEPS}"
    return sorted(name for name, path in packages.items() if any(any(path.glob(pattern)) for pattern in patterns))
