"""Which candidate computes a product: the one that `tune` found fastest on this GPU, else the most promising.

What was found is kept in a file for each GPU in the user's cache folder, with a hash of the kernels that were timed:
when one of them changes, all is forgotten. A file that cannot be read counts as none.
"""

import json
import os
from functools import cache
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_path

from labkit import cuda, results
from labkit.gemm.interface.candidates import Candidate, Shape, candidates
from labkit.gemm.interface.precisions import Precision
from labkit.places import PACKAGE

SOURCES = ("gemm", "blas", "ptx")


def choice(precision: Precision, shape: Shape) -> Candidate:
    """The candidate for such a product on this GPU."""
    return _choice(precision, shape, gpu_name())


@cache
def _choice(precision, shape, gpu):
    possible = candidates(precision, shape)
    found = _found(gpu).get(_key(precision, shape))
    return next((candidate for candidate in possible if candidate.as_data() == found), possible[0])


def remember(precision: Precision, shape: Shape, fastest: Candidate) -> None:
    """Takes this candidate for such products from now on, and keeps that in the file of this GPU.

    Raises
    ------
    OSError
        The file cannot be written; the choice holds until the process ends.
    """
    gpu = gpu_name()
    found = _found(gpu)
    found |= read(cache_file(gpu)) | {_key(precision, shape): fastest.as_data()}
    _choice.cache_clear()
    write(cache_file(gpu), found)


@cache
def _found(gpu) -> dict:
    """What is known of a GPU, by precision and shape."""
    return read(cache_file(gpu))


def gpu_name() -> str:
    """The name of the GPU that this process uses."""
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else name


def _key(precision, shape):
    return f"{precision.name} {shape}"


# --- the file ------------------------------------------------------------------------------------


def cache_file(gpu: str) -> Path:
    """Where the choices for a GPU of that name are kept."""
    return user_cache_path("labkit") / "gemm" / f"{results.slug(gpu)}.json"


def read(path: Path) -> dict:
    """The choices in a file; none if it is not there, is no such file, or other kernels were timed."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return dict(content["choices"]) if content["kernels"] == hash_of_kernels() else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def write(path: Path, choices: dict) -> None:
    """Puts a whole file in place of the other, so that nobody reads half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    content = {"kernels": hash_of_kernels(), "choices": choices}
    new.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    new.replace(path)


@cache
def hash_of_kernels() -> str:
    """A hash of the sources from which kernels are compiled."""
    digest = sha256()
    for folder in SOURCES:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
