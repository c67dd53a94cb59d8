"""The machine code of clusters."""

from numba.cuda import types
from numba.cuda.core.errors import TypingError

from labkit.ptx import clusters
from labkit.ptx.intrinsics import I32, VOID, assembly, index_kinds, intrinsic, plain, shared_address

THERE = ".reg .b32 there;\nmapa.shared::cluster.u32 there, {place}, {cta};"
LOAD = "{{\n" + THERE + "\nld.shared::cluster.{kind} $0, [there];\n}}"
STORE = "{{\n" + THERE + "\nst.shared::cluster.{kind} [there], $2;\n}}"

intrinsic(clusters.cluster_sync)(
    plain("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;")
)


@intrinsic(clusters.cluster_rank)
def _cluster_rank(typing):
    def code(context, builder, signature, arguments):
        return assembly(builder, "mov.u32 $0, %cluster_ctarank;", I32, [], memory=False)

    return types.int32(), code


def _kind(array, index, cta):
    """What PTX calls an element that is loaded or stored."""
    index_kinds(array, index)
    if array.dtype.bitwidth // 8 not in clusters.WIDTHS_BYTES or not isinstance(cta, types.Integer):
        raise TypingError("blocks of a cluster reach elements of 4 or 8 bytes, by the number of a block")
    return f"{'f' if isinstance(array.dtype, types.Float) else 'b'}{array.dtype.bitwidth}"


def _place(context, builder, signature, arguments):
    """The address of the element in this block, and the number of the other."""
    place = shared_address(context, builder, *signature.args[:2], *arguments[:2])
    return [place, context.cast(builder, arguments[2], signature.args[2], types.uint32)]


@intrinsic(clusters.cluster_load)
def _cluster_load(typing, array, index, cta):
    text = LOAD.format(place="$1", cta="$2", kind=_kind(array, index, cta))

    def code(context, builder, signature, arguments):
        place = _place(context, builder, signature, arguments)
        return assembly(builder, text, context.get_value_type(array.dtype), place)

    return array.dtype(array, index, cta), code


@intrinsic(clusters.cluster_store)
def _cluster_store(typing, array, index, cta, value):
    text = STORE.format(place="$0", cta="$1", kind=_kind(array, index, cta))

    def code(context, builder, signature, arguments):
        assembly(builder, text, VOID, [*_place(context, builder, signature, arguments), arguments[3]])
        return context.get_dummy_value()

    return types.void(array, index, cta, array.dtype), code
