"""The fastest candidate for a computation on this GPU: candidates are timed, and the choice is stored on disk.

A *question* is a text that identifies a choice: the computation, its format, shape and layout. A *candidate* is
hashable; `as_data()` returns its form in JSON, and `kernels` are the kernels that it runs. A choice is stored with a
hash of its kernels' sources, and expires when one of them changes. An unreadable file counts as empty, with a warning.
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
from labkit.rebinding import imports, names_used_by

_lock = Lock()


def stored_choice(operation: str, question: str, candidates: Sequence):
    """Return the candidate that was fastest on this GPU, else the first one, which should be the most promising."""
    entry = _stored_choices(operation, gpu_name()).get(question)
    return next((c for c in candidates if entry == _entry(c)), candidates[0]) if entry else candidates[0]


def tune(operation: str, question: str, launches: dict) -> dict:
    """Time candidates, and store the fastest for `stored_choice`, in this process and in later ones.

    `launches` has the launches of each candidate: functions of a stream that launch the same work on other operands.
    Return the median time in ms of each candidate, the fastest first.
    """
    times_ms = timing.gpu_times_ms(launches)
    ranked = dict(sorted(times_ms.items(), key=lambda entry: entry[1]))
    try:
        store_choice(operation, question, next(iter(ranked)))
    except OSError as error:
        warnings.warn(
            f"the choice holds for this process alone, since its file cannot be written: {error}", stacklevel=3
        )
    return ranked


def store_choice(operation: str, question: str, fastest) -> None:
    """Store the choice of a candidate, in memory and in the file of the operation and this GPU.

    Raise OSError if the file cannot be written; the choice holds until the process ends.
    """
    gpu, entry = gpu_name(), _entry(fastest)
    with _lock:  # other threads write the same file
        choices = _stored_choices(operation, gpu)
        choices |= read_choices(cache_file(operation, gpu)) | {question: entry}
        write_choices(cache_file(operation, gpu), choices)


def gpu_name() -> str:
    """Return the name of the GPU that this process uses."""
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else name


@cache
def _stored_choices(operation, gpu) -> dict:
    return read_choices(cache_file(operation, gpu))


def _entry(candidate) -> dict:
    return {"candidate": candidate.as_data(), "made_of": source_hash(tuple(candidate.kernels))}


# --- sources of kernels --------------------------------------------------------------------------


@cache
def source_hash(kernels: tuple) -> str:
    """Return a hash of the sources of kernels, and of all functions of labkit that they call."""
    digest = sha256()
    for path in sorted({path for kernel in kernels for path in source_files(kernel)}):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def source_files(kernel) -> set[Path]:
    """Return the files of labkit that define a kernel, its device functions, their constants and instructions."""
    files, visited, waiting = set(), set(), [kernel]
    while waiting:
        function = waiting.pop()
        function = getattr(function, "py_func", function)
        if function in visited:
            continue
        visited.add(function)
        module = sys.modules[function.__module__]
        files |= _files(module)
        names = names_used_by(function)
        files |= {file for name, (home, _) in imports(module).items() if name in names for file in _files(home)}
        families = [value for value in names.values() if value is ptx]
        members = [getattr(family, name, None) for family in families for name in function.__code__.co_names]
        waiting += [value for value in (*names.values(), *members) if _is_ours(getattr(value, "py_func", value))]
    return files


def _is_ours(value) -> bool:
    return isinstance(value, FunctionType) and value.__module__.startswith("labkit.")


def _files(module: ModuleType) -> set[Path]:
    """Return the file of a module; for a family of instructions also the files that define them for the compiler."""
    path, families = Path(getfile(module)), PACKAGE / "ptx"
    if families not in path.parents:
        return {path}
    return set(families.rglob(path.name) if path.parent == families else path.parent.glob("*.py"))


# --- the file ------------------------------------------------------------------------------------


def cache_file(operation: str, gpu: str) -> Path:
    """Return the path of the file with an operation's choices for a GPU of that name."""
    return user_cache_path("labkit") / operation / f"{results.slug(gpu)}.json"


def read_choices(path: Path) -> dict[str, dict]:
    """Return the choices in a file by their questions; none without a file, and none, with a warning, for a bad one."""
    try:
        choices = json.loads(path.read_text(encoding="utf-8"))["choices"]
        return {question: entry for question, entry in choices.items() if isinstance(entry, dict)}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"{path} holds no choices ({why}): it is written anew when something is timed", stacklevel=2)
        return {}


def write_choices(path: Path, choices: dict) -> None:
    """Replace a file in one step, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    try:
        new.write_text(json.dumps({"choices": choices}, indent=1) + "\n", encoding="utf-8")
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
