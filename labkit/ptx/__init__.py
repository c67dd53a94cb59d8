"""PTX instructions that numba.cuda lacks, as functions of the kernel language.

Kernels call them like `cuda`'s functions, on both machines: on a GPU each is an intrinsic of numba-cuda, and in the
simulator each has its own code for the lanes of a warp.

>>> from labkit import cuda, ptx
>>> @cuda.jit
... def copy(x, out):
...     i = 4 * cuda.grid(1)
...     if i < x.size:
...         a, b, c, d = ptx.load4(x, i)
...         ptx.store4(out, i, a, b, c, d)

A folder is a family (`instruction` lists its files): vector accesses (`vectors`), asynchronous copies (`copies`),
tensor cores of a warp (`matrices`) and of a warpgroup (`warpgroups`), barriers (`mbarriers`, `named_barriers`,
`clusters`), TMA copies (`tensor_copies`), launches that overlap (`launches`), conversions (`formats`), powers of two
(`exponentials`).
"""

from importlib import import_module
from pkgutil import iter_modules

FAMILIES = [found.name for found in iter_modules(__path__) if found.ispkg]

__all__ = []
for _family in FAMILIES:
    _module = import_module(f"{__name__}.{_family}")
    globals().update({name: getattr(_module, name) for name in _module.__all__})
    __all__ += _module.__all__
