"""`gemm.multiply`: right for every format, shape, order and factor, and a sentence for what cannot be multiplied."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit import cuda, gemm, simulate
from labkit.arrays import views
from labkit.arrays.workspace import CountingWorkspace
from labkit.calls.call import forget
from labkit.calls.choice import override_choice
from labkit.formats import FP32
from labkit.gemm.interface import candidates, launches, product
from labkit.gemm.library.tilings import Tiling
from labkit.gemm.simt import tilings as simt
from labkit.layouts.elements import UINT_BY_BYTES
from labkit.layouts.interface import strided

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
FORMATS = {format.name: format for format in candidates.supported_formats()}
ROUNDING = {name: max(format.operand_loss, format.result.rounding) for name, format in FORMATS.items()}
SIDES = st.sampled_from([1, 2, 3, 7, 8, 16, 17, 31, 40, 64, 67])


@pytest.fixture(autouse=True)
def no_plans():
    """As a new process begins."""
    forget(product.Product)
    yield
    forget(product.Product)


def on_gpu(_, __, ordered):
    """The candidates, first those that a GPU would take for float32."""
    return sorted(ordered, key=lambda candidate: candidate.step != "simt")


def encoded(values, format, result=False):
    """The values as the format stores them, and what these stand for, in float64."""
    format = format.result if result else format
    array = np.ascontiguousarray(format.encode(values))
    return array, format.decode(array)


def said(format):
    """What `multiply` is told of a format; of some NumPy's type says enough."""
    return {} if format.name in ("float32", "float16") else {"format": format.name}


def laid_out(array, order):
    """A device array with the elements of `array`, which lie as `order` says, and the array that it is part of."""
    if array.size == 0:  # a GPU's arrays without elements cannot be sliced
        whole = cuda.to_device(array)
        return whole, whole
    first = (slice(None),) * (array.ndim - 2)
    rows, cols = array.shape[-2:]
    sides, part = {
        "rows": ((rows, cols), (slice(None), slice(None))),
        "columns": ((rows, cols), (slice(None), slice(None))),
        "wide": ((rows, (cols // 16 + 2) * 16), (slice(None), slice(0, cols))),
        "inside": ((rows + 3, cols + 5), (slice(2, 2 + rows), slice(1, 1 + cols))),
        "apart": ((rows, 2 * cols), (slice(None), slice(0, None, 2))),
    }[order]
    host = np.full((*array.shape[:-2], *sides), 77, array.dtype)
    host[(*first, *part)] = array
    whole = cuda.to_device(np.asfortranarray(host) if order == "columns" else host)
    return whole[(*first, *part)], whole


ORDERS = st.sampled_from(["rows", "columns", "wide", "inside", "apart"])


@pytest.mark.parametrize("name", FORMATS)
@given(
    sides=st.tuples(SIDES, SIDES, st.one_of(SIDES, st.just(0))),
    transposes=st.tuples(st.booleans(), st.booleans()),
    orders=st.tuples(ORDERS, ORDERS, ORDERS),
    batches=st.sampled_from([(None, None), (None, None), (3, 3), (2, None), (None, 2), (1, 1)]),
    factors=st.sampled_from([(1.0, 0.0), (1.0, 1.0), (-0.5, 0.0), (2.0, -3.0), (0.0, 2.0)]),
    as_on_gpu=st.booleans(),
)
@settings(max_examples=25)
def test_a_product_is_right(name, sides, transposes, orders, batches, factors, as_on_gpu):
    format = FORMATS[name]
    (M, N, K), (alpha, beta) = sides, factors
    rng = np.random.default_rng([M, N, K])
    shapes = [(K, M) if transposes[0] else (M, K), (N, K) if transposes[1] else (K, N)]
    shapes = [shape if batch is None else (batch, *shape) for shape, batch in zip(shapes, batches)]
    of_result = next(((batch,) for batch in batches if batch), ())
    (A, a), (B, b) = (encoded(rng.standard_normal(shape), format) for shape in shapes)
    C, c = encoded(rng.standard_normal((*of_result, M, N)), format, result=True)
    if beta == 0:
        C, _ = encoded(np.full(C.shape, np.nan), format, result=True)
        c = np.zeros(C.shape)
    a, b = (np.swapaxes(x, -1, -2) if swap else x for x, swap in zip((a, b), transposes))
    expected = alpha * (a @ b) + beta * c
    size = abs(alpha) * (np.abs(a) @ np.abs(b)) + np.abs(beta * c)

    (A, _), (B, _), (C, whole) = (laid_out(X, order) for X, order in zip((A, B, C), orders))
    outside = whole.size - C.size
    transposed = {"transpose_a": transposes[0], "transpose_b": transposes[1]}
    forget(product.Product)
    with override_choice(on_gpu if as_on_gpu else lambda _, __, ordered: ordered):
        assert gemm.multiply(A, B, C=C, alpha=alpha, beta=beta, **transposed, **said(format)) is C
    result = format.result.decode(C.copy_to_host())
    rounding = ROUNDING[name]
    bound = 2 * rounding * np.abs(expected) + (K + 2) * (2.0**-23 + format.sum_loss) * size
    bound += 2 * rounding * size if name == "tf32" else rounding * np.abs(alpha * (a @ b))
    assert (np.abs(result - expected) <= bound + 1e-7).all()
    assert np.count_nonzero(whole.copy_to_host() == 77) >= outside  # nothing beside C was written


def kernels(A, B, C, **options):
    """The names of the kernels that a product launches for arrays of the device."""
    arrays = {"A": A, "B": B, "C": C}
    made = product.Product(**options).with_format(arrays).launches(arrays, CountingWorkspace())
    return [launch.kernel.__name__ for launch in made]


def copies(*arrays, **options):
    """The kernels among them by which operands and results are copied."""
    return [
        name
        for name in kernels(*arrays, **options)
        if name in ("copy_tiles", "transpose_tiles", "copy_elements", "combine")
    ]


BIASES = {"side by side": slice(None), "apart": slice(None, None, 3), "behind a number": slice(1, None)}


@pytest.mark.parametrize("name", FORMATS)
@given(
    sides=st.tuples(SIDES, SIDES, st.one_of(SIDES, st.just(0))),
    orders=st.tuples(ORDERS, ORDERS, ORDERS),
    batches=st.sampled_from([(None, None), (None, None), (2, 2), (2, None), (None, 2)]),
    alpha=st.sampled_from([1.0, -0.5, 0.0]),
    lies=st.sampled_from(list(BIASES)),
)
@settings(max_examples=15)
def test_a_bias_is_added_to_each_row(name, sides, orders, batches, alpha, lies):
    format, (M, N, K), rng = FORMATS[name], sides, np.random.default_rng(sides)
    of = [*batches, next((n for n in batches if n), None)]
    shapes = [(*([n] if n else []), *side) for n, side in zip(of, ((M, K), (K, N), (M, N)))]
    (A, a), (B, b) = (encoded(rng.standard_normal(shape), format) for shape in shapes[:2])
    C, _ = encoded(np.full(shapes[2], np.nan), format, result=True)
    room = np.zeros(3 * N + 1)
    room[BIASES[lies]][:N] = rng.standard_normal(N)
    whole_bias, values = encoded(room, format, result=True)
    bias, expected = cuda.to_device(whole_bias)[BIASES[lies]][:N], alpha * (a @ b) + values[BIASES[lies]][:N]
    (A, _), (B, _), (C, whole) = (laid_out(X, order) for X, order in zip((A, B, C), orders))
    assert gemm.multiply(A, B, C=C, alpha=alpha, bias=bias, **said(format)) is C
    size = np.abs(a) @ np.abs(b) + np.abs(values[BIASES[lies]][:N])
    bound = (K + 2) * 2.0**-23 * size + ROUNDING[name] * (2 * np.abs(expected) + 3 * size)
    assert (np.abs(format.result.decode(C.copy_to_host()) - expected) <= bound + 1e-7).all()
    assert np.count_nonzero(whole.copy_to_host() == 77) >= whole.size - C.size


@pytest.mark.parametrize("lies", BIASES)
@pytest.mark.parametrize("name", ["bfloat16", "tf32"])
@pytest.mark.parametrize("down", [False, True], ids=["C in rows", "C in columns"])
@pytest.mark.sample(3)
def test_a_bias_may_lie_otherwise_than_rows_of_the_result(name, down, lies):
    """Whose rows are pieces that the kernel reads two numbers at a time."""
    format, rng = FORMATS[name], np.random.default_rng(0)
    (A, a), (B, b) = (encoded(rng.standard_normal(shape), format) for shape in ((136, 64), (64, 136)))
    whole, values = encoded(rng.standard_normal(3 * 136 + 1), format, result=True)
    C, _ = encoded(np.full((136, 136), np.nan), format, result=True)
    A, B, C = cuda.to_device(A), cuda.to_device(B), cuda.to_device(np.asfortranarray(C) if down else C)
    gemm.multiply(A, B, C=C, bias=cuda.to_device(whole)[BIASES[lies]][:136], **said(format))
    expected = a @ b + values[BIASES[lies]][:136]
    off = np.abs(format.result.decode(C.copy_to_host()) - expected)
    assert (off <= 4 * ROUNDING[name] * (np.abs(a) @ np.abs(b) + np.abs(expected))).all()


MISFITS = [
    ({"bias": np.ones(5, np.float32)}, ValueError, "bias is 5, but C has 4 columns: give a number for each"),
    ({"bias": np.ones((1, 4), np.float32)}, ValueError, "bias is 1 x 4, but C has 4 columns"),
    ({"bias": np.ones(4)}, TypeError, "bias holds float64, but results are stored as float32: convert it"),
    ({"bias": [1, 2, 3, 4]}, TypeError, "bias is a list, not an array"),
    ({"bias": np.ones(4, np.float32), "beta": 1.0}, ValueError, "there are a bias and a beta that is not 0"),
]


@pytest.mark.parametrize(("options", "kind", "why"), MISFITS, ids=[why for *_, why in MISFITS])
def test_a_bias_that_does_not_fit_is_refused_in_a_sentence(options, kind, why):
    A, B, C = (np.ones(shape, np.float32) for shape in ((3, 2), (2, 4), (3, 4)))
    with pytest.raises(kind, match=why):
        gemm.multiply(A, B, C=C, **options)


def test_a_bias_of_the_host_is_added_and_one_beside_the_result_is_refused():
    A, B, bias = np.ones((3, 2), np.float32), np.ones((2, 4), np.float32), np.arange(4, dtype=np.float32)
    assert gemm.multiply(A, B, bias=bias).tolist() == [[2, 3, 4, 5]] * 3
    C = cuda.to_device(np.zeros((3, 4), np.float32))
    with pytest.raises(ValueError, match="C shares memory with bias, which is read while C is written"):
        gemm.multiply(cuda.to_device(A), cuda.to_device(B), C=C, bias=C[1])


def test_a_plan_with_a_bias_runs_for_another_one():
    rng = np.random.default_rng(0)
    A, B, *biases = (rng.standard_normal(side).astype(np.float32) for side in ((20, 24), (24, 16), 16, 16))
    arrays = [cuda.to_device(X) for X in (A, B, np.zeros((20, 16), np.float32))]
    on_A, on_B, C = arrays
    plan = gemm.plan(on_A, on_B, C=C, bias=cuda.to_device(biases[0]))
    for bias, run in ((biases[0], plan), (biases[1], lambda: plan(on_A, on_B, cuda.to_device(biases[1]), C))):
        run()
        np.testing.assert_allclose(C.copy_to_host(), A @ B + bias, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("backwards", [0, 1, 2], ids="ABC")
def test_a_batch_that_runs_backwards_is_multiplied_too(name, backwards):
    format, rng = FORMATS[name], np.random.default_rng(0)
    (A, a), (B, b), (C, c) = (
        encoded(rng.standard_normal((2, rows, 64)), format, result)
        for rows, result in ((16, False), (64, False), (16, True))
    )
    whole, values = [cuda.to_device(X) for X in (A, B, C)], [a, b, c]
    given = dict(zip("ABC", whole))
    given["ABC"[backwards]], values[backwards] = whole[backwards][::-1], values[backwards][::-1]
    gemm.multiply(**given, transpose_b=True, beta=1.0, **said(format))
    result = format.result.decode(whole[2].copy_to_host())[:: -1 if backwards == 2 else 1]
    expected = values[0] @ values[1].transpose(0, 2, 1) + values[2]
    assert np.linalg.norm(result - expected) <= 4 * ROUNDING[name] * np.linalg.norm(expected)


def right_in_float32(monkeypatch, candidate, sides, orders, batches=(None, None), factors=(1.0, 0.0)):
    """Whether a product by this candidate is right, of arrays that lie as `orders` say."""
    monkeypatch.setattr(product, "choose_candidate", lambda *_: candidate)
    (M, N, K), (alpha, beta) = sides, factors
    rng = np.random.default_rng([M, N, K])
    shapes = [(M, K), (K, N), (M, N)]
    of = [*batches, next((n for n in batches if n), None)]
    A, B, C = (rng.standard_normal((*([n] if n else []), *side)).astype(np.float32) for n, side in zip(of, shapes))
    (a, _), (b, _), (c, whole) = (laid_out(X, order) for X, order in zip((A, B, C), orders))
    gemm.multiply(a, b, C=c, alpha=alpha, beta=beta)
    expected = alpha * (A.astype(float) @ B) + beta * C
    beside = np.count_nonzero(whole.copy_to_host() == 77) >= whole.size - c.size
    return beside and np.abs(c.copy_to_host() - expected).max() <= 1e-4


@pytest.mark.parametrize(
    "orders", [("rows",) * 3, ("columns", "rows", "rows"), ("inside", "columns", "apart"), ("wide",) * 3], ids=str
)
@pytest.mark.parametrize(
    ("tiling", "sides", "factors"),
    [
        (simt.Tiling(16, 128, 4, parts=2), (20, 24, 64), (1.0, 0.0)),
        (simt.Tiling(4, 128, 8, parts=4), (5, 67, 90), (-0.5, 2.0)),
        (simt.Tiling(4, 128, 8, swapped=True), (33, 4, 33), (1, 1)),
        (simt.Tiling(32, 32), (40, 50, 36), (1, 1)),
    ],
    ids=str,
)
def test_a_product_on_cuda_cores_is_right(orders, tiling, sides, factors, monkeypatch):
    assert right_in_float32(monkeypatch, candidates.Candidate("simt", tiling), sides, orders, factors=factors)


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("factors", [{}, {"alpha": -0.5, "beta": 2.0}], ids=str)
@pytest.mark.parametrize("name", ["bfloat16", "tf32"])
@pytest.mark.sample(2)
def test_a_product_in_parts_of_k_is_rounded_once(name, factors, transpose_b, monkeypatch):
    tiled = candidates.Candidate("general", Tiling(64, 64, 3), parts=8)
    monkeypatch.setattr(product, "choose_candidate", lambda *_: tiled)
    format, rng = FORMATS[name], np.random.default_rng(0)
    A, a = encoded(rng.standard_normal((20, 1024)), format)
    B, b = encoded(rng.standard_normal((40, 1024) if transpose_b else (1024, 40)), format)
    C, c = encoded(rng.standard_normal((20, 40)), format, result=True)
    expected = factors.get("alpha", 1.0) * (a @ (b.T if transpose_b else b)) + factors.get("beta", 0.0) * c
    result = format.result.decode(gemm.multiply(A, B, C=C, transpose_b=transpose_b, **factors, **said(format)))
    assert np.linalg.norm(result - expected) <= ROUNDING[name] * np.linalg.norm(expected)


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("copied", [(False, True), (True, True)], ids=str)
def test_lines_at_odd_multiples_of_16_bytes_may_be_copied_first(copied, transpose_b, monkeypatch):
    monkeypatch.setattr(product, "choose_candidate", lambda *_: candidates.Candidate("general", WHOLE))
    monkeypatch.setattr(launches, "choose_copies", lambda *_: copied)
    rng = np.random.default_rng(0)
    A, B = (
        rng.standard_normal(sides).astype(np.float16) for sides in ((40, 72), (104, 72) if transpose_b else (72, 104))
    )
    on_A, on_B = cuda.to_device(A), cuda.to_device(B)
    found = gemm.multiply(on_A, on_B, transpose_b=transpose_b)
    expected = A.astype(float) @ (B.T if transpose_b else B).astype(float)
    assert np.allclose(found.copy_to_host(), expected, rtol=2e-3, atol=2e-2)
    assert kernels(on_A, on_B, found, transpose_b=transpose_b) == ["copy_vectors"] * sum(copied) + ["general"]


@pytest.mark.parametrize(
    ("orders", "batches", "count"),
    [
        (("rows", "rows", "rows"), (5, 5), 3),
        (("rows", "columns", "rows"), (5, 5), 3),
        (("inside", "wide", "apart"), (5, 5), 3),
        (("rows", "rows", "rows"), (None, 5), 3),
    ],
)
@pytest.mark.parametrize("slug", ["tiled", "register_tile", "vectorised", "tuned"])
@pytest.mark.sample(4)
def test_a_batch_takes_a_launch_for_all_its_matrices(slug, orders, batches, count, monkeypatch):
    monkeypatch.setattr(launches, "MAX_PLANES", 2)
    assert right_in_float32(monkeypatch, candidates.Candidate(slug), (20, 24, 36), orders, batches)
    sides = zip((*batches, 5), ((20, 24), (24, 36), (20, 36)))
    A, B, C = (
        laid_out(np.zeros((*([n] if n else []), *side), np.float32), order)[0]
        for (n, side), order in zip(sides, orders)
    )
    found = kernels(A, B, C)
    assert len([name for name in found if name.endswith("_batches")]) == count


@pytest.mark.parametrize("orders", [("rows",) * 3, ("columns",) * 3, ("inside", "apart", "wide")], ids=str)
@pytest.mark.parametrize("sides", [(3, 40, 36), (40, 3, 36), (2, 2, 5)], ids=str)
def test_a_few_rows_or_columns_are_computed_one_by_one(orders, sides, monkeypatch):
    assert right_in_float32(monkeypatch, candidates.Candidate("gemv"), sides, orders, (2, 2), (2.0, -1.0))


@pytest.mark.parametrize(
    ("name", "options"),
    [("float32", {}), ("bfloat16", {"transpose_b": True}), ("float8_e4m3", {"transpose_b": True})],
)
def test_what_lies_well_is_taken_as_it_lies(name, options, monkeypatch):
    format = FORMATS[name]
    monkeypatch.setattr(
        product, "choose_candidate", lambda _, *of: candidates.candidates(format, candidates.Shape.of(*of))[-1]
    )
    if name == "float32":
        monkeypatch.setattr(product, "choose_candidate", lambda *_: candidates.Candidate("vectorised"))
    rng = np.random.default_rng(0)
    A, a = encoded(rng.standard_normal((16, 32)), format)
    B, b = encoded(rng.standard_normal((48, 32) if options else (32, 48)), format)
    expected = a @ (b.T if options else b)

    def copied(A, B, **options):
        """The copies of a product, which is right."""
        C = cuda.to_device(np.zeros((16, 48), format.result.dtype))
        gemm.multiply(A, B, C=C, **options, **said(format))
        result = format.result.decode(C.copy_to_host())
        assert np.linalg.norm(result - expected) <= 2 * ROUNDING[name] * np.linalg.norm(expected)
        return copies(A, B, C, **options, **said(format))

    A_device, B_device = map(cuda.to_device, (A, B))
    assert copied(A_device, B_device, **options) == []
    assert copied(views.transpose(A_device), B_device, transpose_a=True, **options) == []
    turns = [] if name == "bfloat16" else ["transpose_tiles"]  # tiles of 16 bits may be transposed
    assert copied(cuda.to_device(np.asfortranarray(A)), B_device, **options) == turns
    apart = cuda.to_device(np.pad(A, ((0, 0), (1, 7))))[:, 1:33]
    assert copied(apart, B_device, **options) == ["copy_tiles"]
    down = np.pad(A, ((0, 1), (0, 0))).T.copy()  # columns that begin at odd bytes
    down = views.transpose(cuda.to_device(down)[:, :16])
    assert copied(down, B_device, **options) == ["transpose_tiles"]


@pytest.mark.parametrize("shape", [(7, 0), (0, 7), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("on", [cuda.to_device, np.copy], ids=["device", "host"])
def test_a_result_without_elements_is_given_back(shape, on):
    *batch, M, N = shape
    A, B, C = (np.ones((*batch, *sides), np.float32) for sides in ((M, 3), (3, N), (M, N)))
    C = on(C)
    assert gemm.multiply(A, B, C=C, beta=1.0) is C


def test_rows_of_a_batch_times_one_matrix_are_one_product(monkeypatch):
    asked = []
    choose = product.choose_candidate
    monkeypatch.setattr(
        product, "choose_candidate", lambda _, *of: asked.append(candidates.Shape.of(*of)) or choose(FP32, *of)
    )
    A, B = (np.random.default_rng(n).standard_normal(s).astype(np.float32) for n, s in enumerate(((9, 4, 8), (8, 12))))
    found = gemm.multiply(cuda.to_device(A)[:, :1], cuda.to_device(B)).copy_to_host()
    assert np.allclose(found, A[:, :1] @ B, atol=1e-5)
    assert {shape.sizes for shape in asked} == {(9, 12, 8, 1)}


WHOLE, BROKEN = Tiling(64, 64, 4), Tiling(64, 72, 4)  # boxes of 64 columns


@pytest.mark.parametrize(
    ("instead", "copied"),
    [({}, []), ({WHOLE: WHOLE, BROKEN: WHOLE}, []), ({WHOLE: WHOLE, BROKEN: BROKEN}, ["transpose_tiles"])],
    ids=["as it is", "another tiling", "a copy"],
)
@pytest.mark.parametrize("tiling", [WHOLE, BROKEN, Tiling(64, 8, 4, 1, True)], ids=["whole", "broken", "swapped"])
def test_what_runs_along_its_rows_is_loaded_in_whole_boxes(tiling, instead, copied, monkeypatch):
    monkeypatch.setattr(product, "choose_candidate", lambda *_: candidates.Candidate("general", tiling))
    if instead:
        monkeypatch.setattr(launches, "choose_whole_boxes", lambda tiling, *_: instead.get(tiling, tiling))
    A, B = (np.random.default_rng(n).standard_normal((80, 80)).astype(np.float16) for n in range(2))
    on_A, on_B = cuda.to_device(A), cuda.to_device(B)
    found = gemm.multiply(on_A, on_B, transpose_a=True)
    assert np.allclose(found.copy_to_host(), A.T.astype(float) @ B.astype(float), rtol=2e-3, atol=2e-2)
    assert copies(on_A, on_B, found, transpose_a=True) == (
        [] if tiling == WHOLE else ["transpose_tiles"] if tiling.swapped and instead else copied
    )


def test_a_product_into_columns_is_the_transposed_one_into_rows():
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal((32, 32)).astype(np.float16) for _ in range(2))
    on_A, on_B, C = cuda.to_device(A), cuda.to_device(B), cuda.to_device(np.zeros((32, 32), np.float16, order="F"))
    gemm.multiply(on_A, on_B, C=C, transpose_b=True)
    assert copies(on_A, on_B, C, transpose_b=True) == []
    assert np.allclose(C.copy_to_host(), A.astype(float) @ B.T.astype(float), rtol=2e-3, atol=1e-2)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3"])
@pytest.mark.parametrize("shape", [(33, 20, 50), (16, 64, 32)], ids=str)
def test_a_step_for_older_gpus_multiplies_any_operands(name, shape, monkeypatch):
    older = candidates.candidates(FORMATS[name], candidates.Shape(*shape), (8, 9))[0]
    assert older.tiling is None
    monkeypatch.setattr(product, "choose_candidate", lambda *_: older)
    format, (M, N, K) = FORMATS[name], shape
    rng = np.random.default_rng(0)
    (A, a), (B, b) = (encoded(rng.standard_normal(sides), format) for sides in ((2, M, K), (K, N)))
    C, c = encoded(rng.standard_normal((2, M, N)), format, result=True)
    for factors in ({}, {"alpha": -0.5, "beta": 2.0}):
        expected = factors.get("alpha", 1.0) * (a @ b) + factors.get("beta", 0.0) * c
        result = format.result.decode(gemm.multiply(A, B, C=C.copy(), **factors, **said(format)))
        assert np.linalg.norm(result - expected) <= ROUNDING[name] * np.linalg.norm(expected)


@pytest.mark.parametrize("kind", [(splits, swapped) for splits in (False, True) for swapped in (False, True)])
def test_sums_are_rounded_once_by_a_tiling_of_each_kind(kind, monkeypatch):
    format = FORMATS["bfloat16"]
    found = candidates.candidates(format, candidates.Shape(13, 90, 400))
    tiled = next(c for c in found if c.step == "general" and (c.tiling.splits > 1, c.tiling.swapped) == kind)
    monkeypatch.setattr(product, "choose_candidate", lambda *_: tiled)
    rng = np.random.default_rng(0)
    (A, a), (B, b) = (encoded(rng.standard_normal(sides), format) for sides in ((13, 400), (90, 400)))
    C, c = encoded(rng.standard_normal((13, 90)), format, result=True)
    result = format.result.decode(gemm.multiply(A, B, C=C, alpha=0.3, beta=-2.0, transpose_b=True, **said(format)))
    rounded = format.decode(format.encode(0.3 * (a @ b.T) - 2 * c))
    assert np.count_nonzero(result != rounded) <= 13 * 90 // 100  # where float32 sums fall beside a tie


@pytest.mark.parametrize("repeated", [False, True])
def test_a_batch_times_one_matrix_is_a_single_product(repeated, monkeypatch):
    shapes, choose = [], product.choose_candidate
    monkeypatch.setattr(
        product, "choose_candidate", lambda _, *of: shapes.append(candidates.Shape.of(*of)) or choose(FP32, *of)
    )
    A = np.random.default_rng(0).standard_normal((3, 5, 8)).astype(np.float32)
    B = cuda.to_device(np.eye(8, dtype=np.float32))
    B = views.as_strided(B, (3, 8, 8), (0, *B.strides)) if repeated else B
    assert (gemm.multiply(cuda.to_device(A), B).copy_to_host() == A).all()
    assert {shape.sizes for shape in shapes} == {(15, 8, 8, 1)}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_more_rows_than_a_grid_has_blocks_take_several_launches(dtype, monkeypatch):
    monkeypatch.setattr(launches, "MAX_ROWS", 8)
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 21, 16)).astype(dtype), rng.standard_normal((2, 16, 5)).astype(dtype)
    expected = A.astype(float) @ B.astype(float)
    assert np.linalg.norm(gemm.multiply(A, B) - expected) < 1e-3 * np.linalg.norm(expected)


def test_numpy_arrays_are_copied_there_and_back():
    A, B, _ = gemm.Problem(9, 10, 11).operands()
    result = gemm.multiply(A[::-1], B)
    assert isinstance(result, np.ndarray) and np.allclose(result, A[::-1] @ B, atol=1e-5)
    into = np.ones((20, 20), np.float32)
    part = into[1:19:2, ::2]
    assert gemm.multiply(A, B, C=part, beta=2.0) is part
    assert np.allclose(part, A @ B + 2, atol=1e-5) and (into[::2] == 1).all() and (into[:, 1::2] == 1).all()
    on_device = gemm.multiply(A, cuda.to_device(B))
    assert np.allclose(on_device.copy_to_host(), A @ B, atol=1e-5)


def test_where_alpha_is_0_operands_do_not_matter():
    A, B = np.full((4, 8), np.nan, np.float32), np.full((8, 4), np.inf, np.float32)
    assert (gemm.multiply(A, B, C=np.ones((4, 4), np.float32), alpha=0.0, beta=3.0) == 3).all()
    assert (gemm.multiply(A, B, alpha=0.0) == 0).all()
    assert (gemm.multiply(A, B, alpha=1e-46) == 0).all()  # 0 as a float32


@pytest.mark.parametrize("shapes", [((0, 4), (4, 5)), ((4, 0), (0, 5)), ((4, 3), (3, 0)), ((0, 4, 3), (3, 2))], ids=str)
def test_empty_products_are_empty_or_zeros(shapes):
    A, B = (np.ones(shape, np.float32) for shape in shapes)
    result = gemm.multiply(A, B)
    assert result.shape == (A @ B).shape and (result == 0).all()


A = np.ones((4, 8), np.float32)
B = np.ones((8, 6), np.float32)
C = np.ones((4, 6), np.float32)
SHARED = cuda.to_device(np.ones((8, 8), np.float32))


@pytest.mark.parametrize(
    ("operands", "options", "error", "words"),
    [
        ((A, B.T), {}, ValueError, "op(A) is 4 x 8 and op(B) is 6 x 8"),
        ((A, B), {"transpose_a": True}, ValueError, "op(A) is 8 x 4"),
        ((A, B, C.T), {}, ValueError, "C is 6 x 4, but op(A) @ op(B) is 4 x 6"),
        ((A, B, C[None]), {}, ValueError, "C is 1 x 4 x 6"),
        ((A, B), {"beta": 1.0}, ValueError, "there is no C"),
        ((A.astype(np.float64), B), {}, TypeError, "A holds float64 and B float32"),
        ((A.astype(np.float16), B), {}, TypeError, "A holds float16 and B float32"),
        (
            (A.astype(np.float16), B.astype(np.float16)),
            {"format": "tf32"},
            TypeError,
            "tf32 is held by arrays of float32",
        ),
        ((A, B), {"format": "bfloat16"}, TypeError, "bfloat16 is held by arrays of uint16"),
        ((A, B), {"format": "half"}, ValueError, "there is no format 'half'"),
        (
            (A.astype(np.int8), B.astype(np.int8)),
            {},
            TypeError,
            "A holds int8 and B int8: convert both to float32, float16, bfloat16",
        ),
        ((A.astype(np.int8), B.astype(np.int8)), {"format": "int8"}, ValueError, "int8 is not multiplied here: give"),
        (
            (A.astype(np.uint8), B.astype(np.uint8)),
            {"format": "float8_e8m0"},
            ValueError,
            "float8_e8m0 is not multiplied here: give float32, tf32, float16, bfloat16",
        ),
        ((A, B), {"format": ["x"]}, ValueError, "there is no format ['x']; there are float32"),
        ((A, B), {"stream": "s"}, TypeError, "'s' is not a stream: give one of cuda.stream()"),
        ((SHARED[:4], B, C), {"stream": "s"}, TypeError, "'s' is not a stream: give one of cuda.stream()"),
        (
            (A, np.ma.array(B, mask=B > 0)),
            {},
            TypeError,
            "B is a masked array, and no mask is looked at: pass B.filled",
        ),
        ((A.astype(np.uint8), B.astype(np.uint8)), {}, TypeError, 'say format="float8_e4m3"'),
        ((A.astype(np.uint16), B.astype(np.uint16)), {}, TypeError, 'say format="bfloat16"'),
        ((A, B, C.astype(np.float16)), {}, TypeError, "C holds float16"),
        ((A, B), {"alpha": None}, TypeError, "alpha is a NoneType, and a factor is a real number"),
        ((A, B, C), {"beta": 1j}, TypeError, "beta is a complex, and a factor is a real number"),
        (([[1.0]], B), {}, TypeError, "A is a list"),
        ((A[0], B), {}, ValueError, "A is of shape (8,)"),
        ((np.ones((2, 4, 8), np.float32), np.ones((3, 8, 6), np.float32)), {}, ValueError, "of 2 matrices and B of 3"),
        ((SHARED[:4], SHARED[:, :6], SHARED[4:, 2:]), {}, ValueError, "C shares memory with B"),
        ((SHARED[:4], B, np.broadcast_to(C, C.shape)), {}, ValueError, "C is read-only"),
        (
            (A, B, np.lib.stride_tricks.as_strided(C, C.shape, (0, 4))),
            {},
            ValueError,
            "elements of C share their memory",
        ),
    ],
)
def test_what_cannot_be_multiplied_is_refused_in_a_sentence(operands, options, error, words):
    with pytest.raises(error) as raised:
        gemm.multiply(**dict(zip("ABC", operands)), **options)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_parts_of_one_array_that_share_no_element_may_be_multiplied():
    whole = cuda.to_device(np.ones((8, 24), np.float32))
    gemm.multiply(whole[:, :8], whole[:, 8:16], C=whole[:, 16:])
    assert (whole.copy_to_host() == [1] * 16 + [8] * 8).all()


def test_elements_of_c_that_share_memory_are_refused():
    row = cuda.to_device(np.zeros(6, np.float32))
    with pytest.raises(ValueError, match="elements of C share"):
        gemm.multiply(A, B, C=views.as_strided(row, (4, 6), (0, 4)))


@pytest.mark.parametrize("itemsize", UINT_BY_BYTES)
@pytest.mark.parametrize("order", "CF")
def test_copies_read_and_write_whole_sectors(order, itemsize):
    source = np.asarray(np.random.default_rng(0).integers(0, 255, (64, 128)), UINT_BY_BYTES[itemsize], order=order)
    target = np.zeros((1, 1, 64, 128), source.dtype)
    kernel = strided.specialise_itemsize(strided.transpose_tiles if order == "F" else strided.copy_tiles, itemsize)
    trace = simulate(kernel, 2, (32, 8), source[None, None], target)
    assert trace.errors == () and (trace.outputs[1] == source).all()
    assert trace.counters.global_load_sectors == trace.counters.global_store_sectors == source.nbytes // 32
    assert trace.counters.bank_conflicts == 0


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("shape", [(1, 70, 300), (70, 1, 300), (1, 1, 300)], ids=str)
def test_a_row_or_a_column_of_float32_is_a_matrix_times_a_vector(shape, transpose_b):
    M, N, K = shape
    rng = np.random.default_rng(shape)
    A, B, C = (rng.standard_normal(side).astype(np.float32) for side in ((2, M, K), (2, K, N), (2, M, N)))
    expected = 2 * A.astype(np.float64) @ B.astype(np.float64) - C
    stored = np.ascontiguousarray(B.transpose(0, 2, 1)) if transpose_b else B
    gemm.multiply(A, stored, C=C, alpha=2, beta=-1, transpose_b=transpose_b)
    assert np.linalg.norm(C - expected) < 5e-8 * np.linalg.norm(np.abs(A) @ np.abs(B))  # short sums, not one long
    (only,) = candidates.candidates(FORMATS["float32"], candidates.Shape(M, N, K))
    assert only.step == "gemv"
