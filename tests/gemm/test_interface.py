"""`gemm.multiply`: right for every precision, shape, order and factor, and a sentence for what cannot be multiplied."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit import cuda, gemm
from labkit.gemm import formats
from labkit.gemm.precisions import PRECISIONS

ROUNDING = {"float32": 2.0**-24, "tf32": 2.0**-10, "bfloat16": 2.0**-8, "float16": 2.0**-11, "float8_e4m3": 2.0**-8}
SIDES = st.sampled_from([1, 2, 3, 7, 8, 16, 17, 31, 40, 64, 67])


def encoded(values, precision, result=False):
    """The values as the precision stores them, and what these stand for, in float64."""
    number = precision.result_format if result else precision.format
    array = np.ascontiguousarray(formats.encode(values, number))
    return array, formats.decode(array, number)


def laid_out(array, order):
    """A device array with the elements of `array`, which lie as `order` says."""
    if order == "gaps":
        *batch, rows, cols = array.shape
        host = np.zeros((*batch, rows + 3, cols + 5), array.dtype)
        host[..., 2 : 2 + rows, 1 : 1 + cols] = array
        whole = cuda.to_device(host)
        return whole[..., 2 : 2 + rows, 1 : 1 + cols] if not batch else whole[:, 2 : 2 + rows, 1 : 1 + cols]
    if order == "columns" and array.ndim == 2:
        return cuda.to_device(np.asfortranarray(array))
    if order == "apart":
        host = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        host[..., ::2] = array
        whole = cuda.to_device(host)
        return whole[:, ::2] if array.ndim == 2 else whole[:, :, ::2]
    return cuda.to_device(array)


ORDERS = st.sampled_from(["rows", "columns", "gaps", "apart"])


@pytest.mark.parametrize("name", PRECISIONS)
@given(
    sides=st.tuples(SIDES, SIDES, st.one_of(SIDES, st.just(0))),
    transposes=st.tuples(st.booleans(), st.booleans()),
    orders=st.tuples(ORDERS, ORDERS, ORDERS),
    batches=st.sampled_from([(None, None), (None, None), (3, 3), (2, None), (None, 2), (1, 1)]),
    factors=st.sampled_from([(1.0, 0.0), (1.0, 1.0), (-0.5, 0.0), (2.0, -3.0), (0.0, 2.0)]),
)
@settings(max_examples=25)
def test_a_product_is_right(name, sides, transposes, orders, batches, factors):
    precision = PRECISIONS[name]
    (M, N, K), (alpha, beta) = sides, factors
    rng = np.random.default_rng([M, N, K])
    shapes = [(K, M) if transposes[0] else (M, K), (N, K) if transposes[1] else (K, N)]
    shapes = [shape if batch is None else (batch, *shape) for shape, batch in zip(shapes, batches)]
    of_result = next(((batch,) for batch in batches if batch), ())
    (A, a), (B, b) = (encoded(rng.standard_normal(shape), precision) for shape in shapes)
    C, c = encoded(rng.standard_normal((*of_result, M, N)), precision, result=True)
    if beta == 0:
        C, _ = encoded(np.full(C.shape, np.nan), precision, result=True)
        c = np.zeros(C.shape)
    a, b = (np.swapaxes(x, -1, -2) if swap else x for x, swap in zip((a, b), transposes))
    expected = alpha * (a @ b) + beta * c
    size = abs(alpha) * (np.abs(a) @ np.abs(b)) + np.abs(beta * c)

    A, B, C = (laid_out(X, order) for X, order in zip((A, B, C), orders))
    options = {"transpose_a": transposes[0], "transpose_b": transposes[1], "tf32": name == "tf32"}
    assert gemm.multiply(A, B, C, alpha=alpha, beta=beta, **options) is C
    result = formats.decode(C.copy_to_host(), precision.result_format)
    rounding = ROUNDING[name]
    bound = 2 * rounding * np.abs(expected) + (K + 2) * 2.0**-23 * size
    bound += 2 * rounding * size if name == "tf32" else rounding * np.abs(alpha * (a @ b))
    assert (np.abs(result - expected) <= bound + 1e-7).all()
