"""Suggested fixes for a read of an element that nothing has written: where to set it."""

import ast
from math import prod

from labkit.rebinding import names_in

NOTHING = "where there is nothing to load, a value that changes no result, such as 0 for a sum"


def cure_unwritten(launch, site, array) -> str:
    """Return a sentence that says where to set what the access at `site` reads; `array` is a whole one."""
    if array.space == "global":
        code = ""
        if array.dtype.names is None:
            shape = array.shape[0] if len(array.shape) == 1 else array.shape
            code = f": `cuda.to_device(np.zeros({shape}, np.{array.dtype.name}))` in place of a new one"
        return f"Set it before line {site.line} reads it, or pass an array that is full{code}."
    if array.space == "local":
        code = f": `for k in range({array.name}.size): {array.name}[k] = 0`" if _is_plain(array) else ""
        cure = f"Set its elements after line {array.line}, which makes it{code}."
        if any(s.array == array.name and s.kind == "store" and _names_thread(launch, s) for s in launch.sites):
            cure += f" If other threads are to set them, {array.name} must be a `cuda.shared.array`."
        return cure
    own = [s for s in launch.sites if s.array == array.name]
    updated = {(s.line, s.column) for s in own if s.kind == "load"}  # by a `+=`, which stores there too
    stores = [s.line for s in own if s.kind == "store" and s.line != site.line and (s.line, s.column) not in updated]
    leaving = _first_return(launch.source.tree)
    if stores and leaving and leaving < min(stores):
        return (
            f"The threads that return in line {leaving} store nothing in line {min(stores)}: let all threads stay, and "
            "guard only accesses that are outside an array."
        )
    threads, elements = prod(launch.block), prod(array.shape)
    if (
        stores
        and threads * len(stores) < elements
        and not any(_is_in_loop(launch.source.tree, line) for line in stores)
    ):
        has = f"{array.name} has {elements:,} for {threads:,} threads"
        said = f"Line {min(stores)} stores one element per thread, and {has}: "
        return f"{said}let each thread store several, in a loop whose step is the number of threads."
    guarded = [(line, test) for line in stores if (test := _guard_of(launch.source.tree, line))]
    if guarded:
        line, test = guarded[0]
        every = f"let every element that line {site.line} reads be stored"
        return f"Line {line} stores only where `{test}`: {every}; {NOTHING}."
    if stores:
        return f"Let line {min(stores)} store every element that line {site.line} reads; {NOTHING}."
    code = ""
    if _is_plain(array) and launch.block[1:] == (1, 1):
        code = f", `for k in range(cuda.threadIdx.x, {array.name}.size, cuda.blockDim.x): {array.name}[k] = 0`,"
    return (
        f"Let the threads of the block set its elements after line {array.line}, which makes it{code} and meet at "
        "`cuda.syncthreads()`."
    )


def _first_return(kernel):
    """Return the line of the first `return` of some threads; None if there is none."""
    branches = [node for node in ast.walk(kernel) if isinstance(node, ast.If)]
    return min((n.lineno for branch in branches for n in branch.body if isinstance(n, ast.Return)), default=None)


def _guard_of(kernel, line):
    """Return the condition of the innermost `if` without `else` around a line; "" if there is none."""
    branches = [node for node in ast.walk(kernel) if isinstance(node, ast.If) and not node.orelse]
    around = [node for node in branches if node.body[0].lineno <= line <= node.body[-1].end_lineno]
    return ast.unparse(max(around, key=lambda node: node.lineno).test) if around else ""


def _is_in_loop(kernel, line):
    loops = [node for node in ast.walk(kernel) if isinstance(node, ast.For | ast.While)]
    return any(node.body[0].lineno <= line <= (node.end_lineno or node.lineno) for node in loops)


def _names_thread(launch, site):
    """Return whether the index of an access is computed from that of the thread."""
    assigned = [node for node in ast.walk(launch.source.tree) if isinstance(node, ast.Assign)]
    of_thread = [target for node in assigned if "threadIdx" in ast.unparse(node.value) for target in node.targets]
    names = {name for target in of_thread for name in names_in(target, ast.Store)}
    return bool(names & names_in(ast.parse(site.text, mode="eval")))


def _is_plain(array):
    """Return whether the array has one axis of numbers, and the name that it has in the kernel."""
    return len(array.shape) == 1 and array.name.isidentifier() and array.dtype.names is None
