"""What numba-cuda's own type inference says of a call; it needs no driver."""

from numba import types


def type_in_numba(path, *arguments):
    """The type of a call by numba-cuda's own inference; None where it refuses."""
    from numba import cuda as numba_cuda
    from numba.core.errors import NumbaError
    from numba.core.target_extension import target_override
    from numba.cuda.descriptor import cuda_target

    context = cuda_target.typing_context
    context.refresh()
    kind = types.Module(numba_cuda)
    for name in path.split("."):
        kind = context.resolve_getattr(kind, name)
    try:
        with target_override("cuda"):
            signature = context.resolve_function_type(kind, arguments, {})
    except NumbaError:
        return None
    return signature and types.unliteral(signature.return_type)
