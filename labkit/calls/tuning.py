"""Which candidate for a piece of work is the fastest on this GPU: they are timed, and the choice is kept on disk.

An operation asks a *question* in words: what is computed, of which format, shape and layout. A *candidate* is hashable,
says by `as_data()` what JSON can hold of it, and by `kernels` what it runs. With each choice a hash of the sources is
kept that these kernels are made of: when one of them changes, that choice is forgotten, and no other. A file that
cannot be read counts as none, with a warning.
"""

import json
import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from inspect import getfile
from pathlib import Path
from threading import Lock
from types import FunctionType, ModuleType

from platformdirs import user_cache_path

from labkit import cuda, ptx, results
from labkit.calls import timing
from labkit.places import PACKAGE
from labkit.rebinding import imports, names_of

_lock = Lock()


def choice(operation: str, question: str, candidates: Sequence):
    """The candidate that was found fastest on this GPU, else the first one, which should be the most promising."""
    kept = _kept(operation, gpu_name()).get(question)
    return next((one for one in candidates if kept == _entry(one)), candidates[0]) if kept else candidates[0]


def tune(operation: str, question: str, launches: dict) -> dict:
    """Times candidates, and keeps the fastest for `choice`, in this process and in later ones.

    Parameters
    ----------
    launches
        For each candidate, functions of a stream as `timing.gpu_times_ms` takes them.

    Returns
    -------
    The median time in ms of each candidate, the fastest first.
    """
    times_ms = timing.gpu_times_ms(launches)
    ranked = dict(sorted(times_ms.items(), key=lambda entry: entry[1]))
    try:
        remember(operation, question, next(iter(ranked)))
    except OSError as error:
        warnings.warn(
            f"the choice holds for this process alone, since its file cannot be written: {error}", stacklevel=3
        )
    return ranked


def remember(operation: str, question: str, fastest) -> None:
    """Takes this candidate from now on, and keeps that in the file of the operation and this GPU.

    Raises
    ------
    OSError
        The file cannot be written; the choice holds until the process ends.
    """
    gpu, entry = gpu_name(), _entry(fastest)
    with _lock:  # other threads write the same file
        kept = _kept(operation, gpu)
        kept |= read(cache_file(operation, gpu)) | {question: entry}
        write(cache_file(operation, gpu), kept)


def gpu_name() -> str:
    """The name of the GPU that this process uses."""
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else name


@cache
def _kept(operation, gpu) -> dict:
    return read(cache_file(operation, gpu))


def _entry(candidate) -> dict:
    return {"candidate": candidate.as_data(), "made_of": hash_of(tuple(candidate.kernels))}


# --- what kernels are made of --------------------------------------------------------------------


@cache
def hash_of(kernels: tuple) -> str:
    """A hash of the sources of kernels, and of all functions of labkit that they call."""
    digest = sha256()
    for path in sorted({path for kernel in kernels for path in sources_of(kernel)}):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def sources_of(kernel) -> set[Path]:
    """The files of labkit in which a kernel is written, its device functions, their constants and instructions."""
    files, known, waiting = set(), set(), [kernel]
    while waiting:
        function = waiting.pop()
        function = getattr(function, "py_func", function)
        if function in known:
            continue
        known.add(function)
        module = sys.modules[function.__module__]
        files |= _files(module)
        names = names_of(function)
        files |= {file for name, (home, _) in imports(module).items() if name in names for file in _files(home)}
        families = [value for value in names.values() if value is ptx]  # of whose instructions it names some
        members = [getattr(family, name, None) for family in families for name in function.__code__.co_names]
        waiting += [one for one in (*names.values(), *members) if _is_ours(getattr(one, "py_func", one))]
    return files


def _is_ours(value) -> bool:
    return isinstance(value, FunctionType) and value.__module__.startswith("labkit.")


def _files(module: ModuleType) -> set[Path]:
    """The file of a module; of a family of instructions also what these are to the compiler."""
    path, families = Path(getfile(module)), PACKAGE / "ptx"
    if families not in path.parents:
        return {path}
    return set(families.rglob(path.name) if path.parent == families else path.parent.glob("*.py"))


# --- the file ------------------------------------------------------------------------------------


def cache_file(operation: str, gpu: str) -> Path:
    """Where the choices of an operation are kept for a GPU of that name."""
    return user_cache_path("labkit") / operation / f"{results.slug(gpu)}.json"


def read(path: Path) -> dict[str, dict]:
    """The choices in a file, by their questions; none if it is not there, or, with a warning, if it is no such file."""
    try:
        choices = json.loads(path.read_text(encoding="utf-8"))["choices"]
        return {question: entry for question, entry in choices.items() if isinstance(entry, dict)}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"{path} holds no choices ({why}): it is written anew when something is timed", stacklevel=2)
        return {}


def write(path: Path, choices: dict) -> None:
    """Puts a whole file in place of the other, so that nobody reads half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    try:
        new.write_text(json.dumps({"choices": choices}, indent=1) + "\n", encoding="utf-8")
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
