"""Where the book's files are: beside the package in a checkout, inside it in an installed wheel."""

from pathlib import Path

PACKAGE = Path(__file__).parent
CHECKOUT = PACKAGE.parent if (PACKAGE.parent / "pyproject.toml").is_file() else None


def folder(name: str) -> Path:
    """The folder `notebooks` or `kernels`."""
    return (CHECKOUT or PACKAGE) / name
