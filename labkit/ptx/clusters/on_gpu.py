"""GPU code of clusters: LLVM IR and inline PTX."""

from numba.cuda import types
from numba.cuda.core.errors import TypingError

from labkit.ptx import clusters
from labkit.ptx.intrinsics import (
    assembly_code,
    bare_instruction,
    emit_assembly,
    index_types,
    intrinsic,
    pure_instruction,
    shared_address,
)

THERE = ".reg .b32 there;\nmapa.shared::cluster.u32 there, {place}, {cta};"
LOAD = "{{\n" + THERE + "\nld.shared::cluster.{kind} $0, [there];\n}}"
STORE = "{{\n" + THERE + "\nst.shared::cluster.{kind} [there], $2;\n}}"

intrinsic(clusters.cluster_sync)(
    bare_instruction("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;")
)


intrinsic(clusters.cluster_rank)(pure_instruction("mov.u32 $0, %cluster_ctarank;", types.int32))


def _kind(array, index, cta):
    """Return the PTX type of an element."""
    index_types(array, index)
    if array.dtype.bitwidth // 8 not in clusters.WIDTHS_BYTES or not isinstance(cta, types.Integer):
        raise TypingError("blocks of a cluster reach elements of 4 or 8 bytes, by the number of a block")
    return f"{'f' if isinstance(array.dtype, types.Float) else 'b'}{array.dtype.bitwidth}"


def _operands(context, builder, signature, arguments):
    """Return the address of the element in this block, and the number of the other block."""
    address = shared_address(context, builder, *signature.args[:2], *arguments[:2])
    return [address, context.cast(builder, arguments[2], signature.args[2], types.uint32)]


@intrinsic(clusters.cluster_load)
def _cluster_load(typing, array, index, cta):
    text = LOAD.format(place="$1", cta="$2", kind=_kind(array, index, cta))

    def code(context, builder, signature, arguments):
        operands = _operands(context, builder, signature, arguments)
        return emit_assembly(builder, text, context.get_value_type(array.dtype), operands)

    return array.dtype(array, index, cta), code


@intrinsic(clusters.cluster_store)
def _cluster_store(typing, array, index, cta, value):
    text = STORE.format(place="$0", cta="$1", kind=_kind(array, index, cta))

    def operands(context, builder, signature, arguments):
        return [*_operands(context, builder, signature, arguments), arguments[3]]

    return types.void(array, index, cta, array.dtype), assembly_code(text, operands)
