"""Compiled kernels on disk, for other processes: numba takes seconds for a kernel, and reading one takes milliseconds.

numba's own cache (`cache=True`) finds a kernel by its file and line, and knows nothing of the values of its globals, of
which a kernel with other sizes differs. This one finds it by its `fingerprint`. Several processes may use it at once:
a file is written beside its place, and then moved there.
"""

import os
import pickle
import tempfile
from pathlib import Path

from numba.cuda import dispatcher as numba_dispatcher
from numba.cuda import serialize
from numba.cuda.core.caching import NullCache
from numba.cuda.core.sigutils import normalize_signature

from labkit.cuda.fingerprint import UnknownValue, fingerprint
from labkit.cuda.kernel_folder import folder, make_room

UNREADABLE = (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, TypeError, ValueError, KeyError)


class DiskCache(NullCache):
    """The cache of one dispatcher, in numba's form; a kernel that depends on more than is known stays out of it."""

    def __init__(self, dispatcher):
        self._dispatcher = dispatcher
        self._paths: dict[tuple, Path | None] = {}  # by argument types, of kernels that are about to be compiled

    @property
    def cache_path(self):
        return str(folder())

    def load_overload(self, sig, target_context):
        path = self._paths[normalize_signature(sig)[0]] = self._path(sig)
        if path is None:
            return None
        try:
            kernel = numba_dispatcher._Kernel._rebuild(**pickle.loads(path.read_bytes()))
            os.utime(path)  # used last now
        except UNREADABLE:  # not there, or of a process that was interrupted
            return None
        return kernel

    def save_overload(self, sig, data):
        path = self._paths.pop(normalize_signature(sig)[0], None)
        if path is None or data.launch_config_sensitive:
            return
        try:
            states = serialize.dumps(data._reduce_states())
        except (RuntimeError, TypeError, AttributeError, pickle.PicklingError):  # it is linked with files
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            make_room(len(states))
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
                file.write(states)
            Path(file.name).replace(path)
        except OSError:  # a full disk, or a folder that cannot be written
            return

    def _path(self, sig):
        options = self._dispatcher.targetoptions
        if options.get("debug") or options.get("lineinfo") or options.get("link"):
            return None
        types = normalize_signature(sig)[0]
        capability = numba_dispatcher.get_current_device().compute_capability
        try:
            key = fingerprint(self._dispatcher.py_func, types, options, capability)
        except UnknownValue:
            return None
        return folder() / f"{key}.kernel"
