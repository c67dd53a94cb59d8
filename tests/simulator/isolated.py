"""Runs a stranger's kernel in a process of its own, with a limit on its memory and its time."""

import multiprocessing
import sys

import numpy as np

MEMORY_BYTES = 4 << 30  # of address space beyond what the imports take
TIMEOUT_S = 60

_context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
if sys.platform != "win32":
    _context.set_forkserver_preload(["cells", "labkit.simulator.run", "labkit.simulator.memory"])


class Tripwire:
    """An object that notes each time Python asks it for anything."""

    touched: list[str] = []  # noqa: RUF012

    def __getattribute__(self, name):
        Tripwire.touched.append(name)
        return object.__getattribute__(self, name)


def _trip(name):
    def method(self, *args, **kwargs):
        Tripwire.touched.append(name)
        return NotImplemented

    return method


for (
    _name
) in """__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __bool__ __len__ __index__ __int__ __float__ __complex__
    __add__ __radd__ __mul__ __rmul__ __neg__ __getitem__ __setitem__ __iter__ __contains__ __call__ __array__
    __array_ufunc__ __repr__ __str__ __format__ __getattr__ __round__ __enter__ __exit__""".split():
    setattr(Tripwire, _name, _trip(_name))


class Worker:
    """A process that runs one kernel after another; one that dies or does not answer is replaced by the next."""

    def __init__(self):
        self._child = None

    def outcome(self, text: str, **launch) -> dict:
        """What becomes of the kernel named `kernel` in a cell.

        Returns
        -------
        dict
            error: the type's name, None for a run, "Died" or "Hung"; line and message of the error; touched: what was
            asked of a Tripwire.
        """
        if self._child is None:
            self._pipe, theirs = _context.Pipe()
            self._child = _context.Process(target=_serve, args=(theirs,), daemon=True)
            self._child.start()
            theirs.close()
        try:
            self._pipe.send((text, launch))
            if self._pipe.poll(TIMEOUT_S):
                return self._pipe.recv()
            failed = "Hung"
        except (EOFError, ConnectionError):
            failed = "Died"
        self.end()
        return {"error": failed, "line": None, "message": "", "touched": []}

    def end(self):
        if self._child is not None:
            self._child.kill()
            self._child.join()
            self._child = None


def _serve(pipe):
    from labkit.simulator import limits

    limits.MAX_CHUNK_WORK, limits.MAX_WORK = 20_000, 100_000  # to be quick
    _limit_memory()
    while True:
        text, launch = pipe.recv()
        pipe.send(_run(text, **launch))


def _run(text, grid=1, block=64, **options):
    from cells import run_cell

    import labkit
    from labkit.simulator.errors import SimulatorError

    result = {"error": None, "line": None, "message": "", "touched": []}
    Tripwire.touched.clear()
    try:
        scope = run_cell(text.replace("#<", ""), evil=Tripwire())
        arguments = scope.get("arguments") or (np.arange(64, dtype=np.float32), np.zeros(64, np.float32))
        labkit.simulate(scope["kernel"], grid, block, *arguments, **options)
    except SimulatorError as error:
        result |= {"error": type(error).__name__, "line": getattr(error, "line", None), "message": str(error)}
    except BaseException as error:
        result |= {"error": f"not the simulator's own: {type(error).__name__}", "message": str(error)[:500]}
    return result | {"touched": list(Tripwire.touched)}


def _limit_memory():
    if sys.platform == "linux":
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            now_bytes = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now_bytes + MEMORY_BYTES, now_bytes + MEMORY_BYTES))
