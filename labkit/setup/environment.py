"""Creation of the checkout's `.venv` with the exact versions of constraints.txt; needs only the standard library.

`python -m labkit.setup.environment [EXTRA ...]` installs labkit in place with these extras, and returns at once if
nothing has changed since.
"""

import hashlib
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
VENV = CHECKOUT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "labkit-installed"
PINS = ("pyproject.toml", "constraints.txt")


def ensure(extras: tuple[str, ...] = ()) -> Path:
    """Bring `.venv` up to date and return its Python.

    Earlier extras are kept, so that `make lab` after `make test` has nothing to do.
    """
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        version = ".".join(map(str, sys.version_info[:2]))
        sys.exit(f"labkit needs Python 3.11, 3.12 or 3.13, and this is {version}; try: make PYTHON=python3.13 lab")
    pins, *installed = STAMP.read_text().split() if STAMP.is_file() and PYTHON.is_file() else [""]
    wanted = sorted({*installed, *({*extras} - _parts(installed))})
    if (pins, installed) == (_pins(), wanted):
        return PYTHON
    if not PYTHON.is_file():
        print(f"Making {VENV}")
        try:
            venv.create(VENV, with_pip=True, symlinks=os.name != "nt")
        except subprocess.CalledProcessError:
            sys.exit("this Python cannot make an environment; on Debian or Ubuntu: apt install python3-venv")
    print("Installing labkit and what it needs (a few minutes the first time)", flush=True)
    package = f".[{','.join(wanted)}]" if wanted else "."
    pip = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check"]
    if subprocess.call([*pip, "--constraint", "constraints.txt", "--editable", package], cwd=CHECKOUT):
        sys.exit("the installation stopped with the error above; run the same command again once it is fixed")
    STAMP.write_text(" ".join([_pins(), *wanted]))
    return PYTHON


def gpu_extras() -> tuple[str, ...]:
    """Return the extra that fits this machine's NVIDIA driver; none without a driver."""
    try:
        report = subprocess.run(["nvidia-smi"], capture_output=True, text=True).stdout
    except OSError:
        return ()
    line = re.search(r"CUDA Version: (\d+)", report)
    if line is None:
        return ()
    return ("cu13",) if int(line[1]) >= 13 else ("cu12",)


def _parts(extras: list[str]) -> set[str]:
    """Return the extras that these consist of, such as `grade` of `dev`."""
    import tomllib  # which a Python that is too old lacks, before `ensure` says so

    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    lines = [line for extra in extras for line in project.get("optional-dependencies", {}).get(extra, ())]
    parts = {part for line in lines if (own := re.match(r"labkit-gpu\[(.+)\]", line)) for part in own[1].split(",")}
    return parts | _parts(sorted(parts)) if parts else parts


def _pins() -> str:
    return hashlib.sha256(b"".join((CHECKOUT / name).read_bytes() for name in PINS)).hexdigest()


if __name__ == "__main__":
    ensure(tuple(sys.argv[1:]))
