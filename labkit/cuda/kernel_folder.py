"""The folder of compiled kernels: where it is, how large it may be, and how it is emptied. This needs no GPU."""

from pathlib import Path

from platformdirs import user_cache_path

MOST_BYTES = 2**30


def folder() -> Path:
    """Return the folder, which need not exist."""
    return user_cache_path("labkit") / "kernels"


def kernels() -> list[Path]:
    """Return the compiled kernels, the one used last at the end."""
    return sorted(folder().glob("*.kernel"), key=_last_used)


def make_room(size_bytes: int) -> None:
    """Remove kernels that were not used for longest, until there is room for so many bytes."""
    found = kernels()
    total = sum(map(_size, found)) + size_bytes
    for path in found:
        if total <= MOST_BYTES:
            break
        total -= _size(path)
        path.unlink(missing_ok=True)


def clear() -> int:
    """Remove all compiled kernels, and what interrupted processes left; return their number."""
    found = kernels()
    for path in (*found, *folder().glob("*.part")):
        path.unlink(missing_ok=True)
    return len(found)


def _size(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:  # another process removed it
        return 0


def _last_used(path):
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
