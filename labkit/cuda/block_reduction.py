"""`cuda.reduce` where there is no GPU: a reduction kernel made for a function of two numbers, run by the simulator."""

from functools import cache

import numpy as np

from labkit.simulator import numba_types
from labkit.simulator.host import unwrap

THREADS = 256


@cache
def reduce_of(cuda):
    """The class `cuda.Reduce`, whose kernels are written in the language of this module, `labkit.cuda`."""

    class Reduce:
        """Makes one number of an array by a function of two, which must be associative.

        Parameters
        ----------
        functor
            The function, as in `cuda.reduce(lambda a, b: a + b)`; a device function, a plain one, or a lambda.
        """

        def __init__(self, functor):
            self._functor = functor
            self._kernels = {}

        def __call__(self, arr, size=None, res=None, init=0, stream=0):
            """The reduction of the first `size` elements of `arr` (all of them if that is None) and `init`.

            The result is returned, or put into the first element of the device array `res`.
            """
            array = unwrap(arr)
            array = array[: array.size if size is None else size]
            if not array.size:
                return init  # as numba does, whatever `res` is
            out = np.empty(1, array.dtype)
            self._kernel(array.dtype)[1, THREADS](array, array.dtype.type(init), out)
            if res is None:
                return out[0]
            unwrap(res)[0] = out[0]
            return None

        def _kernel(self, dtype):
            if dtype not in self._kernels:
                combine = cuda.jit(self._functor, device=True)
                self._kernels[dtype] = _reduction(cuda, combine, numba_types.type_of(dtype))
            return self._kernels[dtype]

    return Reduce


def _reduction(cuda, combine, kind):
    """The kernel of one block: each thread combines every THREADS-th element, then the block halves the rest."""

    @cuda.jit
    def reduced(x, init, out):
        partial = cuda.shared.array(THREADS, kind)
        t = cuda.threadIdx.x
        if t < x.size:
            own = x[t]
            for i in range(t + THREADS, x.size, THREADS):
                own = combine(own, x[i])
            partial[t] = own
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half and t + half < x.size:
                partial[t] = combine(partial[t], partial[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out[0] = combine(init, partial[0])

    return reduced
