"""Suggested fixes for a read of an element that nothing has written: where to set it."""


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
        return f"Set its elements after line {array.line}, which makes it{code}."
    own = [s for s in launch.sites if s.array == array.name]
    updated = {(s.line, s.column) for s in own if s.kind == "load"}  # by a `+=`, which stores there too
    stores = [s.line for s in own if s.kind == "store" and s.line != site.line and (s.line, s.column) not in updated]
    if stores:
        return (
            f"Let line {min(stores)} store every element that line {site.line} reads, with 0 where there is nothing "
            "to load."
        )
    code = ""
    if _is_plain(array) and launch.block[1:] == (1, 1):
        code = f", `for k in range(cuda.threadIdx.x, {array.name}.size, cuda.blockDim.x): {array.name}[k] = 0`,"
    return (
        f"Let the threads of the block set its elements after line {array.line}, which makes it{code} and meet at "
        "`cuda.syncthreads()`."
    )


def _is_plain(array):
    """Return whether the array has one axis of numbers, and the name that it has in the kernel."""
    return len(array.shape) == 1 and array.name.isidentifier() and array.dtype.names is None
