"""Exceptions that threads raise: the thread ends, and what the host learns of it.

numba-cuda compiles `raise` into the end of the thread. Only a kernel under `cuda.jit(debug=True)` keeps the first
exception, which its launch raises on the host.
"""

import builtins

from labkit.simulator.warps import WarpSet
from labkit.trace import Raised


def end_raised(w: WarpSet, mask, error: str, arguments: tuple, where: tuple[str, int, int]):
    """End the threads of `mask`, which raise an exception at `where`: a function, a line and a column."""
    function, line, column = where
    w.mark_returned(mask)
    launch, lane = w.chunk.launch, int(w.active(mask).argmax())
    text = f"{error}: {', '.join(map(str, arguments))}" if arguments else error
    thread = launch.log.thread(int(w.block[lane]), int(w.thread[lane]))
    launch.raised = launch.raised or Raised(error, arguments, function, line, thread)
    message = (
        f"Line {line}: {launch.log.name(thread)} raised {text}. The thread ends here and the others go on. A GPU "
        "says nothing of it, except for a kernel under `@cuda.jit(debug=True, opt=False)`, whose launch raises it on "
        "the host."
    )
    key = "raised", line, column
    launch.log.add(key, w.count(mask), "raised", message, line=line, column=column, threads=(thread,))


def host_exception(raised: Raised, filename: str) -> BaseException:
    """Return the exception that numba-cuda raises after the launch of a kernel with `debug=True`."""
    tid, ctaid = ([*raised.thread.thread][::-1], [*raised.thread.block][::-1])
    where = f"In function {raised.function!r}, file {filename}, line {raised.line}, tid={tid} ctaid={ctaid}"
    first, *others = raised.arguments or (None,)
    return getattr(builtins, raised.error)(where if first is None else f"{where}: {first}", *others)
