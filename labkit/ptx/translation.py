"""Python code that the simulator runs for a call of an instruction in a kernel's source."""

from collections.abc import Callable

from labkit.simulator.seam import types
from labkit.simulator.values import Value


def emit_call(translator, run: Callable, *operands, waits: bool = False) -> Value:
    """Emit the call `run(w, *operands)`, operands being code, and return the value None; it yields while it `waits`."""
    call = f"{translator.constant(run)}({', '.join(('w', *map(str, operands)))})"
    translator.emit(f"yield from {call}" if waits else call)
    return Value("None", types.none)


def call_site(translator, node, line: int | None = None) -> str:
    """Return the code of (line, column, name) of a call, for its findings."""
    return f"({line or node.lineno}, {node.col_offset}, {translator.written(node.func)!r})"
