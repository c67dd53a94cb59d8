"""numba's ufuncs for CUDA run in the simulator, with the results that numba's ufuncs for the CPU have."""

import pytest
from programs import run

CHECK = """\
import math
import numpy as np
from numba import cuda, float32, guvectorize, vectorize

def compare(make, *operands):
    ours, numbas = make("cuda"), make("cpu")
    result, expected = ours(*operands), numbas(*operands)
    assert result.dtype == expected.dtype and result.shape == expected.shape, (result, expected)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    result = ours(*map(cuda.to_device, operands))
    assert type(result).__name__ == "DeviceArray"
    np.testing.assert_allclose(result.copy_to_host(), expected, rtol=1e-6)
    out = cuda.device_array_like(result)
    assert ours(*operands, out=out) is out
    np.testing.assert_allclose(out.copy_to_host(), expected, rtol=1e-6)
    print("equal")

x = np.linspace(-2, 2, 12, dtype=np.float32)
"""
CASES = {
    "elementwise": """
def make(target):
    @vectorize(["float32(float32, float32)", "float64(float64, float64)"], target=target)
    def hypotenuse(a, b):
        return math.sqrt(a * a + b * b)
    return hypotenuse
compare(make, x, x[::-1].copy())
compare(make, x.reshape(3, 4), x[:4].astype(np.float64))
""",
    "five_and_six_inputs": """
def make(target):
    @vectorize(["float64(float64, float64, float64, float64, float64)"], target=target)
    def call_option(spot, strike, years, rate, volatility):
        d = (math.log(spot / strike) + (rate + volatility**2 / 2) * years) / (volatility * math.sqrt(years))
        present = strike * math.exp(-rate * years)
        below = 1 + math.erf((d - volatility * math.sqrt(years)) / math.sqrt(2.0))
        return (spot * (1 + math.erf(d / math.sqrt(2.0))) - present * below) / 2
    return call_option
def make_six(target):
    @vectorize(["float32(float32, float32, float32, float32, float32, float32)"], target=target)
    def six(a, b, c, d, e, f):
        return a + b * c - d * e + f
    return six
compare(make, np.linspace(5, 30, 12), np.linspace(1, 40, 12), np.full(12, 2.0), np.full(1, 0.02), np.full(12, 0.3))
compare(make_six, x, x + 1, x - 2, x * 3, x[:1], x)
""",
    "types_of_the_first_call": """
def make(target):
    @vectorize([], target=target)
    def half(a):
        return a / 2
    return half
compare(make, np.arange(5))
""",
    "rows": """
def make(target):
    @guvectorize(["void(float32[:,:], float32[:,:], float32[:,:])"], "(m,k),(k,n)->(m,n)", target=target)
    def multiply(a, b, c):
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                total = float32(0)
                for k in range(a.shape[1]):
                    total += a[i, k] * b[k, j]
                c[i, j] = total
    return multiply
compare(make, x.reshape(2, 2, 3), x.reshape(2, 3, 2))
compare(make, x.reshape(2, 2, 3), x[:6].reshape(3, 2))
""",
    "rows_of_four_inputs": """
def make(target):
    @guvectorize(["void(float32[:], float32[:], float32, float32, float32[:])"], "(n),(n),(),()->(n)", target=target)
    def blend(a, b, s, t, out):
        for i in range(a.shape[0]):
            out[i] = s * a[i] + t * b[i]
    return blend
compare(make, x.reshape(4, 3), x.reshape(4, 3) + 1, np.arange(4, dtype=np.float32), np.ones(4, np.float32))
""",
    "numbers_of_rows": """
def make(target):
    @guvectorize(["void(float32[:], float32, float32[:])"], "(n),()->()", target=target)
    def weigh(a, factor, out):
        total = float32(0)
        for value in a:
            total += value * factor
        out[0] = total
    return weigh
compare(make, x.reshape(4, 3), np.arange(4, dtype=np.float32))
""",
}


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_numbas_ufuncs_for_the_cpu(tmp_path, case):
    result = run(tmp_path, CHECK + CASES[case])
    assert result.stdout == "equal\n" * CASES[case].count("\ncompare("), result.stderr
    assert "labkit: 0 errors" in result.stderr


def test_a_sum_over_an_array(tmp_path):
    program = """\
import numpy as np
from numba import vectorize

@vectorize(["int64(int64, int64)"], target="cuda")
def add(a, b):
    return a + b

print(add.reduce(np.arange(7)), add.reduce(np.arange(7), init=100))
"""
    assert run(tmp_path, program).stdout == "21 121\n"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("add(np.ones(3), np.ones(3))", "add has no signature for float64, float64, only for int32, int32: convert"),
        ("add.reduce(np.ones((2, 2), np.int32))", "add.reduce takes an array of one axis with elements"),
    ],
)
def test_refusals_say_what_to_do(tmp_path, call, sentence):
    program = f"""\
import numpy as np
from numba import vectorize

@vectorize(["int32(int32, int32)"], target="cuda")
def add(a, b):
    return a + b

{call}
"""
    result = run(tmp_path, program)
    assert result.returncode == 1
    assert sentence in result.stderr


def test_findings_show_the_lines_and_names_of_the_decorated_function(tmp_path):
    program = """\
import numpy as np
from numba import guvectorize, vectorize

@vectorize(["float32(float32, float32)"], target="cuda")
def halve(out, i):
    return out * 0.5 + i

@guvectorize(["void(float32[:], float32[:])"], "(n)->(n)", target="cuda")
def shift(i, result):
    for k in range(i.size):
        result[k] = i[k + 1]

x = np.arange(8, dtype=np.float32)
halve(x, x)
shift(x.reshape(2, 4))
"""
    report = run(tmp_path, program).stderr
    assert "program.py:6: advice (float64) in kernel halve\n      6 | return out * 0.5 + i" in report
    assert "program.py:11: error (bounds) in kernel shift\n     11 | result[k] = i[k + 1]" in report
    assert "element [4] of a slice of i, but i has 4" in " ".join(report.split())
    assert "vectorized.py" not in report
