"""Extras of the distribution that bring missing packages."""

import re
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from labkit.setup import environment

DISTRIBUTION = "labkit-gpu"
_REQUIREMENT = re.compile(r"([\w.-]+).*extra == ['\"](\w+)['\"]")


def describe_missing_package(error: ModuleNotFoundError) -> str:
    """Return a sentence that names the missing package and its cure; "" if no extra brings the package."""
    package = (error.name or "").partition(".")[0]
    extra = _extras().get(package.lower())
    return f"{package} is not installed: {how_to_install(extra)}" if extra else ""


def how_to_install(extra: str) -> str:
    """Return the command that adds an extra to the environment of this process."""
    if Path(sys.prefix).resolve() == environment.VENV.resolve():
        return f"run `python -m labkit.setup.environment {extra}` in {environment.CHECKOUT}"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _extras() -> dict[str, str]:
    """Packages by name, each with the smallest extra that brings it."""
    try:
        found = [match.groups() for line in requires(DISTRIBUTION) or () if (match := _REQUIREMENT.match(line))]
    except PackageNotFoundError:  # labkit is used from a folder
        return {}
    sizes = Counter(extra for _, extra in found)
    return {package.lower(): extra for package, extra in sorted(found, key=lambda pair: -sizes[pair[1]])}
