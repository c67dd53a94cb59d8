"""`python -m labkit ...`: the command line; in a checkout it first makes the environment that it runs in."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from labkit.setup import environment


def main():
    if _installed() and Path(sys.prefix).resolve() != environment.VENV.resolve():
        from labkit.cli import app

        app()
    python = environment.ensure(environment.gpu_extras())
    command = [str(python), "-m", "labkit.cli", *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.call(command))
    os.execv(python, command)


def _installed() -> bool:
    try:
        return bool(distribution("labkit"))
    except PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
