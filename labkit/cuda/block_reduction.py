"""`cuda.reduce` without a GPU: a reduction kernel for a function of two numbers, which the simulator runs."""

from functools import cache

import numpy as np

from labkit.simulator import numba_types
from labkit.simulator.host import unwrap

THREADS = 256


@cache
def make_reduce_class(cuda):
    """Return the class `cuda.Reduce`; `cuda` is the module `labkit.cuda`, which imports this one."""

    class Reduce:
        """Reduction of an array to one number by an associative function of two.

        `functor` is the function, as in `cuda.reduce(lambda a, b: a + b)`; a device function, a plain one, or a lambda.
        """

        def __init__(self, functor):
            self._functor = functor
            self._kernels = {}

        def __call__(self, arr, size=None, res=None, init=0, stream=0):
            """Reduce `init` and the first `size` elements of `arr`; all elements if `size` is None.

            Return the result, or store it in the first element of the device array `res`.
            """
            array = unwrap(arr)
            array = array[: array.size if size is None else size]
            if not array.size:
                return init  # like numba, with or without `res`
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


def _reduction(cuda, combine, element_type):
    """Make the kernel of one block: each thread combines every THREADS-th element, then a tree combines the threads."""

    @cuda.jit
    def reduced(x, init, out):
        partial = cuda.shared.array(THREADS, element_type)
        t = cuda.threadIdx.x
        if t < x.size:
            thread_sum = x[t]
            for i in range(t + THREADS, x.size, THREADS):
                thread_sum = combine(thread_sum, x[i])
            partial[t] = thread_sum
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
