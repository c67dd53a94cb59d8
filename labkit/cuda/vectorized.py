"""`numba.vectorize` and `numba.guvectorize` with `target="cuda"`, without a GPU: the simulator runs their kernels."""

from functools import cached_property
from math import prod

import numpy as np
from numba import njit, types
from numba.core import sigutils
from numba.np.numpy_support import as_dtype
from numba.np.ufunc.sigparse import parse_signature

from labkit import cuda
from labkit.simulator.errors import LaunchError
from labkit.simulator.host import DeviceArray, unwrap
from labkit.simulator.reading.source import written_as

THREADS = 128


class _Declared:
    """A decorated function with its declared signatures; numba's decorators call these methods."""

    def __init__(self, function, **ignored):
        self.__name__ = function.__name__
        self.function = function
        self.signatures: list[tuple] = []  # (types of the arguments, type of the result)
        self._kernels: dict = {}  # by the number of operands

    def add(self, signature) -> None:
        """Add a declared signature, such as "float32(float32, float32)"."""
        arguments, result = sigutils.normalize_signature(signature)
        self.signatures.append((tuple(arguments), result))

    def disable_compile(self) -> None:
        """Do nothing: declared signatures are the only ones already."""

    def build_ufunc(self):
        return self

    @cached_property
    def _core(self):
        return cuda.jit(self.function, device=True)

    def _declared(self, dtypes) -> tuple:
        """Return the first declared signature that takes operands of these dtypes without loss."""
        for signature in self.signatures:
            wanted = [_dtype(kind) for kind in signature[0][: len(dtypes)]]
            if len(wanted) == len(dtypes) and all(map(np.can_cast, dtypes, wanted)):
                return signature
        declared = "; ".join(", ".join(map(str, arguments)) for arguments, _ in self.signatures)
        raise LaunchError(
            f"{self.__name__} has no signature for {', '.join(map(str, dtypes))}, only for {declared}: convert the "
            "operands, or add a signature"
        )

    def _launch(self, kernels, operands, threads):
        """Launch the kernel for this many operands."""
        if len(operands) not in kernels:
            raise LaunchError(
                f"{self.__name__} has {len(operands)} inputs and outputs, and the simulator runs such functions of 2 "
                f"to {max(kernels)}: write a kernel"
            )
        if threads:
            if len(operands) not in self._kernels:
                kernel = kernels[len(operands)](self._core)
                self._kernels[len(operands)] = cuda.jit(written_as(kernel, self.function))
            self._kernels[len(operands)].forall(threads, THREADS)(*operands)


class Vectorize(_Declared):
    """A function of numbers, applied to each element of arrays: what `numba.vectorize` makes."""

    def __call__(self, *arrays, out=None, stream=0):
        """Apply the function to arrays that broadcast together; the result is a device array if an operand is one."""
        values = [np.asarray(unwrap(X)) for X in arrays]
        kinds, result = self._types([X.dtype for X in values])
        shape = np.broadcast_shapes(*(X.shape for X in values))
        flat = [
            np.ascontiguousarray(np.broadcast_to(X, shape), as_dtype(kind)).ravel() for X, kind in zip(values, kinds)
        ]
        results = cuda.device_array(prod(shape), as_dtype(result))
        self._launch(ELEMENTWISE, [*map(cuda.to_device, flat), results], results.size)
        return _delivered(results.reshape(shape), arrays, out)

    def reduce(self, array, init=None, stream=0):
        """Reduce an array of one axis to a number by the function, which takes two."""
        values = unwrap(array)
        if values.ndim != 1 or not values.size:
            raise LaunchError(f"{self.__name__}.reduce takes an array of one axis with elements; pass array.ravel()")
        while values.size > 1:  # an odd last element waits for the next launch
            half = values.size // 2
            values = np.concatenate([self(values[:half], values[half : 2 * half]), values[2 * half :]])
        return values[0] if init is None else self(values[:1], np.asarray([init], values.dtype))[0]

    def _types(self, dtypes):
        """Return the types of the arguments and of the result."""
        if self.signatures:
            return self._declared(dtypes)
        kinds = tuple(types.boolean if dtype.kind == "b" else getattr(types, dtype.name) for dtype in dtypes)
        compiled = njit(self.function)  # for its types only
        compiled.compile(kinds)
        return kinds, compiled.overloads[kinds].signature.return_type


class GUVectorize(_Declared):
    """A function of arrays, applied along leading axes: what `numba.guvectorize` makes.

    Parameters
    ----------
    function
        The function; its last parameters are the outputs.
    signature
        The axes of each operand, as in "(m,k),(k,n)->(m,n)".
    """

    def __init__(self, function, signature, **ignored):
        super().__init__(function)
        self.input_axes, self.output_axes = parse_signature(signature)

    def __call__(self, *arrays, out=None, stream=0):
        """Apply the function to the last axes of arrays whose leading axes broadcast together."""
        arrays, outputs = arrays[: len(self.input_axes)], arrays[len(self.input_axes) :]
        if len(self.output_axes) > 1:
            raise LaunchError(f"{self.__name__} has several outputs, and the simulator takes one: write a kernel")
        out = outputs[0] if outputs else out
        values = [np.asarray(unwrap(X)) for X in arrays]
        kinds, _ = self._declared([X.dtype for X in values])
        sizes: dict[str, int] = {}
        for X, axes in zip(values, self.input_axes, strict=True):
            for axis, size in zip(axes, X.shape[X.ndim - len(axes) :], strict=True):
                if sizes.setdefault(axis, size) != size:
                    raise LaunchError(f"axis {axis} of {self.__name__} is {sizes[axis]} and {size}: pass one size")
        leading = np.broadcast_shapes(*(X.shape[: X.ndim - len(axes)] for X, axes in zip(values, self.input_axes)))
        inner = tuple(sizes[axis] for axis in self.output_axes[0])
        operands = []
        for X, axes, kind in zip(values, self.input_axes, kinds):
            X = np.ascontiguousarray(np.broadcast_to(X, leading + X.shape[X.ndim - len(axes) :]), _dtype(kind))
            operands.append(cuda.to_device(X.reshape(_rows(prod(leading), X.shape[len(leading) :], kind))))
        results = cuda.device_array(_rows(prod(leading), inner, kinds[-1]), _dtype(kinds[-1]))
        self._launch(ROWS, [*operands, results], prod(leading))
        return _delivered(results.reshape(leading + inner), arrays, out)


def _dtype(kind):
    return as_dtype(kind.dtype if isinstance(kind, types.Array) else kind)


def _rows(rows, inner, kind):
    """Return the shape of an operand as rows, one per call; a number that is declared as an array has one element."""
    return (rows, *(inner or ((1,) if isinstance(kind, types.Array) else ())))


def _delivered(results, operands, out):
    """Return the results in `out`, if given, or as an array of the operands' kind."""
    if out is None:
        on_device = any(isinstance(X, DeviceArray) for X in operands)
        return results if on_device else results.copy_to_host()[()]
    unwrap(out)[...] = unwrap(results)
    if isinstance(out, DeviceArray):
        out.fill_blank()
    return out


# `_core` is the decorated function, by a name that none of its arguments has.


def _unary(_core):
    def kernel(a, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            out[i] = _core(a[i])

    return kernel


def _binary(_core):
    def kernel(a, b, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            out[i] = _core(a[i], b[i])

    return kernel


def _ternary(_core):
    def kernel(a, b, c, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            out[i] = _core(a[i], b[i], c[i])

    return kernel


def _quaternary(_core):
    def kernel(a, b, c, d, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            out[i] = _core(a[i], b[i], c[i], d[i])

    return kernel


def _quinary(_core):
    def kernel(a, b, c, d, e, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            out[i] = _core(a[i], b[i], c[i], d[i], e[i])

    return kernel


def _senary(_core):
    def kernel(a, b, c, d, e, f, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            out[i] = _core(a[i], b[i], c[i], d[i], e[i], f[i])

    return kernel


def _rows_of_two(_core):
    def kernel(a, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            _core(a[i], out[i])

    return kernel


def _rows_of_three(_core):
    def kernel(a, b, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            _core(a[i], b[i], out[i])

    return kernel


def _rows_of_four(_core):
    def kernel(a, b, c, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            _core(a[i], b[i], c[i], out[i])

    return kernel


def _rows_of_five(_core):
    def kernel(a, b, c, d, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            _core(a[i], b[i], c[i], d[i], out[i])

    return kernel


# Makers of kernels, by the number of inputs and outputs.
ELEMENTWISE = {2: _unary, 3: _binary, 4: _ternary, 5: _quaternary, 6: _quinary, 7: _senary}
ROWS = {2: _rows_of_two, 3: _rows_of_three, 4: _rows_of_four, 5: _rows_of_five}
