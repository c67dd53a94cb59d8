"""A sandbox for strangers' programs, made by bubblewrap: no network, only the files that Python needs, and limits.

A program sees the system's libraries, this Python, and labkit without its solutions, all read-only. Home and temporary
files are in memory, of limited size. Processes, memory and output are limited; nothing outlives the run. System calls
are not filtered: a program could use a fault of the operating system's kernel.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit import places
from labkit.grading.nbval_run import ONE_THREAD
from labkit.grading.process import Limits, run
from labkit.simulator.seam.by_numba import cache_subfolder

HOME = "/home/student"
LIMITS = Limits(seconds=150, processes=100, memory_bytes=3 << 30, printed_bytes=4 << 20)
DISK_BYTES = 64 << 20
COMPILED = f"{HOME}/.compiled"  # numba's folder of compiled functions
_START = """
import os, resource, sys
for source, folder in {compiled}.items():  # links, so that nothing is compiled again that the grader has compiled
    os.makedirs(folder)
    for name in os.listdir(source):
        if name.endswith((".nbi", ".nbc")):
            os.symlink(os.path.join(source, name), os.path.join(folder, name))
for name, limit in (("FSIZE", {disk}), ("DATA", {memory}), ("CORE", 0), ("NPROC", {processes}), ("NOFILE", 1024)):
    resource.setrlimit(getattr(resource, "RLIMIT_" + name), (limit, limit))
os.execv(sys.argv[1], sys.argv[1:])
"""


@cache
def explain_missing() -> str:
    """Return a sentence if there is no sandbox on this machine, else ""."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return "Answers were not run as programs: that needs Linux with bubblewrap (apt install bubblewrap)."
    try:
        with TemporaryDirectory(prefix="labkit-sandbox-") as folder:
            status, output = run_inside([sys.executable, "-I", "-c", "print('inside')"], Path(folder), {}, LIMITS)
    except OSError as error:
        status, output = None, str(error)
    if status == 0 and "inside" in output:
        return ""
    return f"Answers were not run as programs: bubblewrap cannot make a sandbox here ({output.strip()[:200]})."


def run_inside(
    command: Sequence[str], folder: Path, files: dict[str, Path], limits: Limits = LIMITS
) -> tuple[int | None, str]:
    """Run a command in the sandbox; return its exit status (None if it broke a limit) and its output.

    Parameters
    ----------
    folder
        A folder for its output meanwhile.
    files
        The files in its home, by name.
    """
    start = _START.format(
        compiled=_compiled_folders(), disk=DISK_BYTES, memory=limits.memory_bytes, processes=limits.processes
    )
    inside = [sys.executable, "-I", "-S", "-c", start, *command]
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    return run([*_bwrap_command(files), "--", *inside], folder, environment, limits)


def _compiled_folders():
    """Return the folders of labkit's compiled functions, each with the one where numba looks in the sandbox."""
    package = Path(os.path.realpath(places.PACKAGE))
    folders = {path.parent for path in package.rglob("__pycache__/*.nbi")}
    return {str(folder): f"{COMPILED}/{cache_subfolder(str(folder.with_name('any.py')))}" for folder in sorted(folders)}


def _bwrap_command(files):
    args = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if _can_disable_user_namespaces():  # in its own namespace a program could mount anything
        args += ["--unshare-user", "--disable-userns"]
    args += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--clearenv"]
    variables = {"HOME": HOME, "IPYTHONDIR": f"{HOME}/.ipython", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    variables |= {"LABKIT_DEVICE": "simulator", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    variables |= ONE_THREAD | {"NUMBA_CACHE_DIR": COMPILED}
    variables["PYTHONPATH"] = os.path.dirname(os.path.realpath(places.PACKAGE))
    for name, value in variables.items():
        args += ["--setenv", name, value]
    for path in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(path):
            args += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            args += ["--ro-bind", path, path]
    args += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev"]
    args += _tmpfs("/tmp") + _tmpfs("/dev/shm") + _tmpfs(HOME)
    for path in dict.fromkeys(os.path.realpath(path) for path in (sys.base_prefix, sys.prefix, places.PACKAGE)):
        if not path.startswith("/usr/"):
            args += ["--ro-bind", path, path]
    if (places.PACKAGE / "notebooks").is_dir():  # an installed labkit has the solutions in it
        args += _tmpfs(os.path.realpath(places.PACKAGE / "notebooks"))
    for name, path in files.items():
        args += ["--ro-bind", str(path), f"{HOME}/{name}"]
    for path in ("/dev", "/"):  # in memory too, and of no size
        args += ["--remount-ro", path]
    return [*args, "--chdir", HOME]


@cache
def _can_disable_user_namespaces():
    """Tell whether this bubblewrap can keep programs from making user namespaces (0.8 and later)."""
    help_text = subprocess.run(["bwrap", "--help"], capture_output=True, text=True)
    return "--disable-userns" in help_text.stdout + help_text.stderr


def _tmpfs(path):
    return ["--size", str(DISK_BYTES), "--tmpfs", path]
