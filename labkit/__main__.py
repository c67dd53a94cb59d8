"""`python -m labkit ...`: the command line; in a checkout it first creates its environment."""

import os
import subprocess
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - before imports that an older Python cannot parse
    found = ".".join(map(str, sys.version_info[:2]))
    sys.exit(f"labkit needs Python 3.11, 3.12 or 3.13, and this is {found}; try: make PYTHON=python3.13 lab")

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from labkit.setup import environment


def main():
    if _installed() and Path(sys.prefix).resolve() != environment.VENV.resolve():
        from labkit.cli import main as run

        run()
    python = environment.ensure(("grade", *environment.gpu_extras()))
    command = [str(python), "-m", "labkit.cli", *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.call(command))
    os.execv(python, command)


def _installed() -> bool:
    try:
        return bool(distribution("labkit-gpu"))
    except PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
