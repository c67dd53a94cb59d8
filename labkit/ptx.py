"""PTX instructions that numba.cuda has no name for, as functions of the kernel language.

A kernel calls them as it calls `cuda`'s functions, and they run on both machines: on a GPU each is an intrinsic of
numba-cuda, and what each does to the lanes of a warp is registered with the simulator.

>>> from labkit import cuda, ptx
>>> @cuda.jit
... def copy(x, out):
...     i = 4 * cuda.grid(1)
...     if i < x.size:
...         a, b, c, d = ptx.load4(x, i)
...         ptx.store4(out, i, a, b, c, d)

The vector accesses are `ld.v2`, `ld.v4`, `st.v2` and `st.v4` of the PTX ISA manual (section "Data Movement and
Conversion Instructions"): one instruction moves 8 or 16 bytes a thread, between registers and a global or shared
array. The first element must lie at a multiple of that many bytes: a GPU stops the launch where it does not. Arrays in
global memory begin at such a place; a shared one is asked to, `cuda.shared.array(256, float32, alignment=16)`.
"""

from labkit.simulator.errors import LaunchError
from labkit.simulator.instructions import INSTRUCTIONS
from labkit.simulator.vectors import VectorLoad, VectorStore

WIDTHS_BYTES = (8, 16)


def load2(array, index):
    """The element at `index` and the next one, `array[index], array[index + 1]`, read at once.

    Parameters
    ----------
    array
        A global or shared array in C order, of elements of 4 or 8 bytes.
    index
        A whole number, or a tuple of them, one for each axis; the elements follow along the last axis.
    """
    _outside("load2")


def load4(array, index):
    """Four neighbouring elements, read at once; as `load2`, for elements of 2 or 4 bytes."""
    _outside("load4")


def store2(array, index, a, b):
    """Writes `a` and `b` to `array[index]` and the element after it, at once; as `load2`."""
    _outside("store2")


def store4(array, index, a, b, c, d):
    """Writes four neighbouring elements at once; as `load4`."""
    _outside("store4")


def _outside(name):
    raise LaunchError(f"ptx.{name} has a meaning only inside a kernel: use it in a function under @cuda.jit")


# --- on lanes ------------------------------------------------------------------------------------

INSTRUCTIONS |= {
    "ptx.load2": VectorLoad(2, WIDTHS_BYTES),
    "ptx.load4": VectorLoad(4, WIDTHS_BYTES),
    "ptx.store2": VectorStore(2, WIDTHS_BYTES),
    "ptx.store4": VectorStore(4, WIDTHS_BYTES),
}


# --- on a GPU ------------------------------------------------------------------------------------


def register_with_numba():
    """Gives each function its machine code; `labkit.compiler` calls this once, where numba-cuda is installed."""
    from llvmlite import ir
    from numba.cuda import cgutils, types
    from numba.cuda.core.errors import TypingError
    from numba.cuda.extending import infer
    from numba.cuda.typing.templates import infer_global, make_intrinsic_template

    def index_types(array, index, elements):
        """The types of the indices, one for each axis, of an access that there is an instruction for."""
        indices = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
        if not isinstance(array, types.Array) or array.layout != "C":
            raise TypingError("a vector access needs an array in C order: pass a copy")
        if len(indices) != array.ndim or not all(isinstance(i, types.Integer) for i in indices):
            raise TypingError(f"a vector access to this array needs {array.ndim} whole numbers as its index")
        if elements * array.dtype.bitwidth // 8 not in WIDTHS_BYTES:
            raise TypingError(f"{elements} elements of {array.dtype} are not 8 or 16 bytes")
        return indices

    def place(context, builder, array_type, index_type, array, index, elements):
        """A pointer to the vector, and the bytes that it is aligned to."""
        kinds = index_types(array_type, index_type, elements)
        values = cgutils.unpack_tuple(builder, index) if isinstance(index_type, types.BaseTuple) else [index]
        indices = [context.cast(builder, value, kind, types.intp) for value, kind in zip(values, kinds, strict=True)]
        view = context.make_array(array_type)(context, builder, array)
        wraps = any(kind.signed for kind in kinds)  # negative ones count from the end, as in a subscript
        first = cgutils.get_item_pointer(context, builder, array_type, view, indices, wraparound=wraps)
        vector = ir.VectorType(context.get_data_type(array_type.dtype), elements)
        return builder.bitcast(first, vector.as_pointer()), elements * array_type.dtype.bitwidth // 8

    def load(array, index, elements):
        index_types(array, index, elements)

        def code(context, builder, signature, arguments):
            pointer, aligned = place(context, builder, array, index, *arguments, elements)
            vector = builder.load(pointer, align=aligned)
            return cgutils.pack_array(builder, [builder.extract_element(vector, _lane(i)) for i in range(elements)])

        return types.UniTuple(array.dtype, elements)(array, index), code

    def store(array, index, elements):
        index_types(array, index, elements)

        def code(context, builder, signature, arguments):
            pointer, aligned = place(context, builder, array, index, *arguments[:2], elements)
            vector = ir.VectorType(context.get_data_type(array.dtype), elements)(ir.Undefined)
            for i, value in enumerate(arguments[2:]):
                vector = builder.insert_element(vector, value, _lane(i))
            builder.store(vector, pointer, align=aligned)
            return context.get_dummy_value()

        return types.void(array, index, *(array.dtype,) * elements), code

    def _lane(number):
        return ir.Constant(ir.IntType(32), number)

    for function, definition in (
        (load2, lambda typing, array, index: load(array, index, 2)),
        (load4, lambda typing, array, index: load(array, index, 4)),
        (store2, lambda typing, array, index, a, b: store(array, index, 2)),
        (store4, lambda typing, array, index, a, b, c, d: store(array, index, 4)),
    ):
        # as numba.cuda.extending.intrinsic does, but under the name of the function above
        template = make_intrinsic_template(function, definition, function.__name__, kwargs={"target": "cuda"})
        infer(template)
        infer_global(function, types.Function(template))
