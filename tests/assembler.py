"""Kernels as machine code, without a GPU: by the assembler of the CUDA toolkit."""

import shutil
import subprocess
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sampling import WHOLE

from labkit.simulator.errors import LaunchError

TARGETS = [(7, 5), (8, 0), (9, 0)]


def ptxas() -> str:
    """The assembler of the installed toolkit wheels, or the machine's own."""
    roots = find_spec("nvidia").submodule_search_locations if find_spec("nvidia") else []
    found = [path for root in roots for path in Path(root).glob("*/bin/ptxas*")]
    return str(found[0]) if found else shutil.which("ptxas")


def assembled(ptx, target, folder) -> tuple[str, bytes]:
    """What the assembler reports of a kernel, and its cubin."""
    (folder / "kernel.ptx").write_text(ptx)
    command = [ptxas(), "-v", f"-arch=sm_{''.join(map(str, target))}", "kernel.ptx", "-o", "kernel.cubin"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr, (folder / "kernel.cubin").read_bytes()


def ptx_for_the_oldest(function, argument_types, among=TARGETS):
    """The PTX for the oldest of some GPUs that has all of the kernel's instructions, and those that take it."""
    from labkit.cuda.compiling import ptx_text

    for number, target in enumerate(among[:-1]):
        with suppress(LaunchError):
            return ptx_text(function, argument_types, target), among[number:]
    return ptx_text(function, argument_types, among[-1]), among[-1:]


@cache
def reports(function, argument_types, among=TARGETS) -> dict[tuple, str]:
    """What the assembler reports of a kernel for GPUs that take it; a process asks it once for each kernel."""
    code, targets = ptx_for_the_oldest(function, argument_types, among)
    with TemporaryDirectory() as folder:
        return {target: assembled(code, target, Path(folder))[0] for target in some_of(targets)}


def some_of(targets) -> list[tuple]:
    """The oldest and the newest of some GPUs; all of them in `make test-long`."""
    return list(targets) if WHOLE else list(dict.fromkeys((targets[0], targets[-1])))
