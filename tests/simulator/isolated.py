"""Runs a stranger's kernel in a process of its own, with a limit on its memory and its time."""

import multiprocessing
import sys

import numpy as np

MEMORY_BYTES = 4 << 30  # of address space beyond what the imports take
TIMEOUT_S = 15

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


for _name in """__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __bool__ __len__ __index__ __int__ __float__ __complex__
    __add__ __radd__ __mul__ __rmul__ __neg__ __getitem__ __setitem__ __iter__ __contains__ __call__ __array__
    __array_ufunc__ __repr__ __str__ __format__ __getattr__ __round__ __enter__ __exit__""".split():
    setattr(Tripwire, _name, _trip(_name))


def outcome(text: str, launch: dict, names: dict | None = None) -> dict:
    """What becomes of the kernel named `kernel` in a cell: "error" (its type's name, or None), "line", "message",
    "touched" (what was asked of a Tripwire), and "printed" (lines).

    A process that dies or does not end is an error too: "Died" or "Hung".
    """
    ours, theirs = _context.Pipe(duplex=False)
    child = _context.Process(target=_run, args=(text, launch, names or {}, theirs))
    child.start()
    theirs.close()
    try:
        if not ours.poll(TIMEOUT_S):
            return {"error": "Hung", "line": None, "message": f"no end within {TIMEOUT_S} s"}
        return ours.recv()
    except EOFError:
        return {"error": "Died", "line": None, "message": "the process ended without an answer"}
    finally:
        child.kill()
        child.join()


def _run(text, launch, names, pipe):
    from cells import run_cell

    import labkit
    from labkit.simulator.errors import SimulatorError

    _limit_memory()
    result = {"error": None, "line": None, "message": "", "touched": [], "printed": 0}
    scope = run_cell(text.replace("#<", "").replace("#*", ""), evil=Tripwire(), **names)
    arguments = launch.pop("arguments", None) or (np.arange(64, dtype=np.float32), np.zeros(64, np.float32))
    Tripwire.touched.clear()
    try:
        trace = labkit.simulate(scope["kernel"], launch.pop("grid", 1), launch.pop("block", 64), *arguments, **launch)
        result["printed"] = len(trace.printed)
    except SimulatorError as error:
        result |= {"error": type(error).__name__, "line": getattr(error, "line", None), "message": str(error)}
    except BaseException as error:
        result |= {"error": f"not the simulator's own: {type(error).__name__}", "message": str(error)[:500]}
    result["touched"] = list(Tripwire.touched)
    pipe.send(result)


def _limit_memory():
    if sys.platform == "linux":
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            now_bytes = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now_bytes + MEMORY_BYTES, now_bytes + MEMORY_BYTES))
