"""`labkit run` where numba is not installed: what kernels need of it stands in its place."""

from programs import SHIFT, without_numba

TYPED = """\
import numba
import numpy as np
from numba import cuda, float32, njit, prange, types


@njit
def half(x):
    return x * float32(0.5)


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit("void(float32[::1], float32[:])")
def squares_turned_around(x, out):
    s = cuda.shared.array(32, float32)
    number = cuda.local.array(1, types.int32)
    i = cuda.grid(1)
    number[0] = cuda.threadIdx.x
    s[number[0]] = x[i]
    cuda.syncthreads()
    out[i] = square(s[31 - number[0]]) + numba.float32(1)


x = np.arange(64, dtype=np.float32)
out = cuda.device_array(64, np.float32)
squares_turned_around[2, 32](cuda.to_device(x), out)
print(out.copy_to_host()[:3], half(float32(3)), [*prange(2)])
"""


def test_a_program_runs_with_the_types_of_numba(tmp_path):
    result = without_numba(tmp_path, TYPED)
    assert result.stdout == "[962. 901. 842.] 1.5 [0, 1]\n", result.stderr
    assert "labkit: 0 errors and 0 pieces of advice in 1 launch of 1 kernel" in result.stderr


def test_faults_are_told_as_with_numba(tmp_path):
    result = without_numba(tmp_path, SHIFT)
    assert result.returncode == 1
    assert "program.py:9: error (bounds) in kernel shift" in result.stderr
    assert "error (race) in kernel shift" in result.stderr
