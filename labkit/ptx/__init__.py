"""PTX instructions that numba.cuda has no name for, as functions of the kernel language.

A kernel calls them as it calls `cuda`'s functions, and they run on both machines: on a GPU each is an intrinsic of
numba-cuda, and each carries with it what it does to the lanes of a warp, for the simulator.

>>> from labkit import cuda, ptx
>>> @cuda.jit
... def copy(x, out):
...     i = 4 * cuda.grid(1)
...     if i < x.size:
...         a, b, c, d = ptx.load4(x, i)
...         ptx.store4(out, i, a, b, c, d)

A folder is a family (`instruction` says what is in it): accesses of several elements (`vectors`), asynchronous copies
(`copies`), tensor cores of a warp (`matrices`) and of a warpgroup (`warpgroups`), barriers (`mbarriers`,
`named_barriers`, `clusters`), tiles moved by the copy engine (`tensor_copies`), launches that overlap (`launches`),
conversions (`formats`), powers of two (`exponentials`).
"""

from importlib import import_module
from pkgutil import iter_modules

FAMILIES = [found.name for found in iter_modules(__path__) if found.ispkg]

__all__ = []
for _family in FAMILIES:
    _module = import_module(f"{__name__}.{_family}")
    globals().update({name: getattr(_module, name) for name in _module.__all__})
    __all__ += _module.__all__
