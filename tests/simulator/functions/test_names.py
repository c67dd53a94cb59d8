"""Every function of numbers that numba-cuda offers to a kernel runs here, or is on the closed list of refusals."""

import cmath
import math

import numpy as np
import pytest
from numba_oracle import typing_context

from labkit.simulator.functions.refused import REFUSED
from labkit.simulator.language import CALLS, CASTS, FUNCTIONS, explain_unknown

pytestmark = pytest.mark.needs("numba-cuda")

RUN = {*FUNCTIONS, *CASTS, *CALLS}


def offered():
    """The names that numba-cuda itself lists."""
    from numba import cuda
    from numba.cuda import bf16, fp16, libdevicefuncs
    from numba.cuda.np import ufunc_db

    names = {f"cuda.libdevice.{name.removeprefix('__nv_')}" for name in libdevicefuncs.functions}
    for module in (fp16, bf16):
        family = module.__name__.rsplit(".", 1)[1]
        names |= {f"cuda.{family}.{name}" for name in module.__all__ if not name.endswith("registry")}
    names |= {f"np.{ufunc.__name__}" for ufunc in ufunc_db.get_ufuncs()}
    known = typing_context()._functions
    for module in (math, cmath):
        names |= {f"{module.__name__}.{name}" for name, value in vars(module).items() if _in(known, value)}
    names |= {f"cuda.{name}" for name in "popc brev clz ffs fma cbrt selp nanosleep".split()}
    names |= {f"cuda.{name}" for name in dir(cuda) if name[:2] in ("ld", "st") and len(name) == 4}
    return names | {"abs", "round", "min", "max", "pow", "divmod", "int", "float", "bool", "complex"}


def _in(known, value):
    try:
        return callable(value) and value in known
    except TypeError:
        return False


def first_name(name):
    """NumPy's own name of a universal function that has several."""
    return f"np.{getattr(np, name.removeprefix('np.')).__name__}" if name.startswith("np.") else name


def test_every_function_of_numba_cuda_runs_or_is_refused():
    names = offered()
    assert len(names) > 650
    assert names - RUN == {first_name(name) for name in REFUSED}


def test_numpys_functions_are_those_that_numba_cuda_has_code_for():
    from numba.cuda import ufuncs

    coded = {f"np.{ufunc.__name__}" for ufunc in ufuncs.ufunc_db()}
    assert {first_name(name) for name in FUNCTIONS if name.startswith("np.")} == coded


def test_a_function_that_is_refused_says_what_to_write_instead():
    for name, cure in REFUSED.items():
        assert name not in RUN
        assert cure in explain_unknown(name, name)


@pytest.mark.parametrize("short", ["fp16", "bf16"])
def test_numba_cuda_has_every_function_of_16_bit_floats(short):
    public = pytest.importorskip(f"numba.cuda.{short}")
    header = pytest.importorskip(f"numba.cuda._internal.cuda_{short}")
    names = {name.removeprefix(f"cuda.{short}.") for name in FUNCTIONS if name.startswith(f"cuda.{short}.")}
    assert not [name for name in names if not hasattr(public, name) and not hasattr(header, name)]
