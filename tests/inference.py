"""What numba-cuda says about types, asked without a GPU; tests that ask skip themselves where it is missing."""

from functools import cache

import pytest
from numba import types


def variable_types(function, argument_types) -> dict[str, set]:
    """The scalar types that numba infers for each variable of a kernel, over all its versions."""
    compiler = pytest.importorskip("numba.cuda.compiler")
    found: dict[str, set] = {}
    inferred = compiler.compile_cuda(function, types.void, tuple(argument_types), cc=(9, 0)).type_annotation.typemap
    for name, kind in inferred.items():
        if not name.startswith(("$", "arg.")) and isinstance(kind, types.Number | types.Boolean):
            found.setdefault(name.split(".")[0], set()).add(types.unliteral(kind))
    return found


@cache
def typing_context():
    """The rules by which numba-cuda types a call."""
    context = pytest.importorskip("numba.cuda.descriptor").cuda_target.typing_context
    context.refresh()
    return context


def typed(function, argument_types):
    """(result type, argument types after conversion) of a call in a kernel, as text, or None if it has none."""
    try:
        signature = typing_context().resolve_function_type(function, tuple(argument_types), {})
    except Exception:  # numba raises many kinds of error for what it cannot type
        return None
    return signature and plain(signature.return_type, signature.args)


def plain(result, arguments):
    """A signature as text that does not depend on who made the types; numba-cuda and labkit each have a bfloat16."""
    return tuple(str(t).replace("__nv_", "") for t in (types.unliteral(result), *map(types.unliteral, arguments)))
