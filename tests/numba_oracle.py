"""What numba-cuda's own type inference says, without a driver; tests that ask are marked `needs("numba-cuda")`."""

from functools import cache

from numba import types


def variable_types(function, argument_types) -> dict[str, set]:
    """The scalar types that numba infers for each variable of a kernel, over all its versions."""
    from numba.cuda import compiler

    found: dict[str, set] = {}
    inferred = compiler.compile_cuda(function, types.void, tuple(argument_types), cc=(9, 0)).type_annotation.typemap
    for name, kind in inferred.items():
        if not name.startswith(("$", "arg.")) and isinstance(kind, types.Number | types.Boolean):
            found.setdefault(name.split(".")[0], set()).add(types.unliteral(kind))
    return found


@cache
def typing_context():
    """The rules by which numba-cuda types a call."""
    from numba.cuda.descriptor import cuda_target

    context = cuda_target.typing_context
    context.refresh()
    return context


def signature_in_numba(function, arguments):
    """(result type, argument types after conversion) of a call in a kernel, as text; None where numba refuses."""
    try:
        signature = typing_context().resolve_function_type(function, tuple(arguments), {})
    except Exception:  # numba raises many kinds of error for what it cannot type
        return None
    return signature and plain(signature.return_type, signature.args)


def plain(result, arguments):
    """A signature as text that does not depend on who made the types; numba-cuda and labkit each have a bfloat16."""
    return tuple(str(t).replace("__nv_", "") for t in (types.unliteral(result), *map(types.unliteral, arguments)))


def type_in_numba(path, *arguments):
    """The type of a call of `cuda.path`; None where numba refuses."""
    from numba import cuda as numba_cuda
    from numba.core.errors import NumbaError
    from numba.core.target_extension import target_override

    context = typing_context()
    kind = types.Module(numba_cuda)
    for name in path.split("."):
        kind = context.resolve_getattr(kind, name)
    try:
        with target_override("cuda"):
            signature = context.resolve_function_type(kind, arguments, {})
    except NumbaError:
        return None
    return signature and types.unliteral(signature.return_type)
