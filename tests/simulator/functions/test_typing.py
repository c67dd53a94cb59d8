"""Each function of numbers takes and gives the types that it has on a GPU."""

import cmath
import itertools
import math

import numpy as np
import pytest
from numba_oracle import plain, signature_in_numba

from labkit.simulator import numba_types
from labkit.simulator.functions import bits, builtin, complexes, half, libdevice, mathematics, ufuncs

pytestmark = pytest.mark.needs("numba-cuda")

FAMILIES = {f.__name__.rsplit(".", 1)[1]: f for f in (bits, builtin, complexes, half, libdevice, mathematics, ufuncs)}
SOME = [
    numba_types.type_named(n) for n in "boolean int8 int32 uint64 float16 float32 float64 complex64 bfloat16".split()
]
ALL = SOME + [numba_types.type_named(n) for n in "int16 int64 uint8 uint16 uint32 complex128".split()]


def called(name):
    """The function itself, found by its name."""
    from numba import cuda
    from numba.cuda import bf16, fp16

    places = {"math": math, "cmath": cmath, "np": np, "cuda": cuda, "cuda.libdevice": cuda.libdevice}
    places |= {"cuda.fp16": fp16, "cuda.bf16": bf16}
    module, _, last = name.rpartition(".")
    return getattr(places[module], last, None) if module else __builtins__[last]


@pytest.mark.parametrize("family", FAMILIES)
def test_functions_are_typed_as_on_a_gpu(family):
    from numba.cuda.types import bfloat16

    theirs = {numba_types.bfloat16: bfloat16}
    few = {"libdevice": SOME[2:7:2], "half": SOME[2:7:2], "ufuncs": SOME[1::2]}.get(family, SOME)
    checked = 0
    for name, function in FAMILIES[family].FUNCTIONS.items():
        original = called(name)
        if original is None:  # the header's name, which numba-cuda has under another one
            continue
        given = [(t,) for t in ALL] + list(itertools.product(few, repeat=2))
        given += [(t,) * 3 for t in ALL]
        for kinds in given:
            expected = signature_in_numba(original, tuple(theirs.get(t, t) for t in kinds))
            if function.lacks_code(kinds):
                expected = None
            found = function.resolve(kinds)
            assert (found and plain(*found)) == expected, (name, kinds)
            checked += expected is not None
    assert checked > 20
