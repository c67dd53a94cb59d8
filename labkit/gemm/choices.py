"""Which candidate computes a product: the one that `tune` found fastest on this GPU, else the most promising.

What was found is kept in a file for each GPU in the user's cache folder, with a hash of the kernels that were timed:
when one of them changes, all are forgotten. A file that cannot be read counts as none.
"""

import json
import os
from functools import cache
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_path

from labkit import device, results
from labkit.gemm.candidates import Candidate, Shape, candidates
from labkit.gemm.precisions import Precision
from labkit.places import PACKAGE

SOURCES = ("gemm", "ptx")


def choice(precision: Precision, shape: Shape) -> Candidate:
    """The candidate for such a product on this GPU."""
    return _choice(precision, shape, device.current().name)


@cache
def _choice(precision, shape, gpu):
    possible = candidates(precision, shape)
    found = _read(cache_file(gpu)).get(_key(precision, shape))
    return next((candidate for candidate in possible if candidate.as_data() == found), possible[0])


def remember(precision: Precision, shape: Shape, found: Candidate) -> None:
    """Keeps a candidate as the fastest for such a product on this GPU.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    path = cache_file(device.current().name)
    kept = {**_read(path), _key(precision, shape): found.as_data()}
    _choice.cache_clear()
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps({"kernels": kernels_hash(), "choices": kept}, indent=1) + "\n", encoding="utf-8")
    new.replace(path)  # at once, so that nobody reads half a file


def cache_file(gpu: str) -> Path:
    """Where the choices for a GPU of that name are kept."""
    return user_cache_path("labkit") / "gemm" / f"{results.slug(gpu)}.json"


def _key(precision, shape):
    return f"{precision.name} {shape}"


def _read(path) -> dict:
    """The choices in a file, by shape; none if it is not there, is no such file, or other kernels were timed."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content["choices"] if content["kernels"] == kernels_hash() else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


@cache
def kernels_hash() -> str:
    """A hash of the sources from which kernels are compiled."""
    digest = sha256()
    for folder in SOURCES:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
