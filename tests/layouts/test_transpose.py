"""The ladder of transposes: right on random images, costs as stated, and each step fixes the flaw of the one before."""

import inspect
import re
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, layouts
from labkit.cuda import cpp
from labkit.formats import BF16, FP32
from labkit.layouts import Conversion
from layouts.some_conversions import any_alignment

STEPS = layouts.ladder("transpose")
WAYS = [("NCHW", "NHWC"), ("NHWC", "NCHW"), ("NCHW", "NCHW_VECT_C"), ("NCHW_VECT_C", "NCHW")]
TILES = Conversion(1, 64, 8, 16)  # whole tiles for every step
SHORT = Conversion(1, 128, 7, 7), Conversion(1, 3, 32, 64)
VECTORS_ALONE = "vectorised", "swizzled"
ON_ONE_SIDE = "one_sided", "pieces"
NO_VECTORS = "are not whole pieces of 16 bytes"
EXAMPLES = 100 if WHOLE else 15


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


def in_vectors(problem, format):
    """Tell for source and target if their rows are whole vectors."""
    return [size * format.itemsize % 16 == 0 for size in problem.matrices()[1:]]


def takes(step, problem, format):
    """Tell if a step accepts a conversion, as its docstring says."""
    if problem.matrices() is None:
        return False
    whole = in_vectors(problem, format)
    return all(whole) if step.slug in VECTORS_ALONE else any(whole) if step.slug in ON_ONE_SIDE else True


@pytest.mark.parametrize("format", STEPS.formats, ids=str)
@pytest.mark.parametrize("slug", [step.slug for step in STEPS])
@settings(max_examples=EXAMPLES)
@given(problem=any_alignment(WAYS), seed=st.integers(0, 2**16))
def test_a_step_moves_every_element_or_says_what_it_takes(slug, format, problem, seed):
    step = STEPS.step(slug)
    before = problem.operands(format, seed)
    if takes(step, problem, format):
        run = step.simulate(*before, format=format)
        assert run.errors == ()
        assert problem.is_right(before, run.operands, format)
    else:
        with pytest.raises(ValueError, match=f"{NO_VECTORS}|this step transposes matrices"):
            step.launches(*before, format=format)


def test_bits_of_any_kind_are_moved_as_they_are(step):
    problem = Conversion(1, 8, 4, 6)
    bits = np.random.default_rng(3).integers(0, 1 << 32, problem.shape("NCHW"), np.uint32)
    bits.flat[:3] = 0x7FC00123, 0xFFA00001, 0x80000000  # NaN with payloads, and a negative zero
    y = np.zeros(problem.shape("NHWC"), np.float32)
    run = step.simulate(bits.view(np.float32), y, problem)
    assert (run.operands[1].view(np.uint32) == bits.transpose(0, 2, 3, 1)).all()


def costs(step) -> dict[str, str]:
    """The costs that a step states, as expressions by what they are."""
    lines = re.findall(r"^    (\S.*?)  +(\S.*?)(?:[:;].*)?$", step.module.__doc__, re.MULTILINE)
    return {what: expression for expression, what in lines}


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
def test_a_step_costs_what_its_docstring_says(step, format):
    for problem in SHORT if step.slug == "pieces" else (TILES,):
        (trace,) = step.simulate(*problem.operands(format), format=format).traces
        counters, blocks, elements = trace.counters, prod(trace.grid), prod(problem.shape("NCHW"))
        counted = {
            "sectors read per element": counters.global_load_sectors / elements,
            "sectors written per element": counters.global_store_sectors / elements,
            "bytes of shared memory per block": trace.shared_bytes,
            "barriers per block": counters.barriers / blocks,
            "bank conflicts per block": counters.bank_conflicts / blocks,
        }
        stated = costs(step)
        assert len(stated) >= 3
        for what, expression in stated.items():
            assert eval(expression, {"B": format.itemsize}, vars(step.module)) == pytest.approx(counted[what]), what


def test_what_is_advised_is_the_idea_of_a_later_step():
    advised = {
        step.slug: {finding.kind for finding in step.simulate(*TILES.operands()).traces[0].advice} for step in STEPS
    }
    assert advised == {
        "naive": {"uncoalesced"},
        "tiled": {"bank-conflict"},
        "padded": set(),
        "vectorised": {"bank-conflict"},
        "swizzled": set(),
        "one_sided": {"bank-conflict"},
        "pieces": {"bank-conflict"},
    }


def test_vectors_take_a_fourth_of_the_requests():
    requests = {step.slug: step.simulate(*TILES.operands()).traces[0].counters.global_load_requests for step in STEPS}
    assert requests["padded"] == requests["naive"] == 4 * requests["vectorised"] == 4 * requests["swizzled"]


@pytest.mark.parametrize("pixels", [1, 2, 3, 4, 7, 8, 16, 32, 49, 64, 98, 100, 128, 196])
@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
def test_elements_of_short_rows_are_picked_in_six_passes_at_most(pixels, format):
    problem = Conversion(1, 64 * 32, 1, pixels)
    counters = STEPS.step("pieces").simulate(*problem.operands(format), format=format).traces[0].counters
    assert counters.shared_load_wavefronts <= 6 * counters.shared_loads / 32


@pytest.mark.parametrize(
    ("way", "of_vectors"), [(("NCHW", "NHWC"), "global_store_sectors"), (("NHWC", "NCHW"), "global_load_sectors")]
)
def test_rows_of_49_pixels_cost_sectors_on_their_own_side_alone(way, of_vectors):
    problem = Conversion(1, 64, 7, 7, *way)
    counters = STEPS.step("one_sided").simulate(*problem.operands()).traces[0].counters
    assert getattr(counters, of_vectors) == 64 * 49 * 4 / 32
    assert counters.global_load_sectors + counters.global_store_sectors > 2 * 64 * 49 * 4 / 32


def test_where_no_side_has_short_rows_there_are_no_pieces():
    problem = Conversion(1, 2000, 1, 2000, "NHWC", "NCHW")
    with pytest.raises(
        ValueError, match="rows of 2000 elements on one side, and of 2000 on the other, are none of them"
    ):
        STEPS.step("pieces").launches(*problem.operands())


def test_all_steps_have_the_same_form(step):
    assert list(inspect.signature(step.module.launches).parameters) == ["x", "y", "problem"]
    assert step.idea.endswith(".") and step.kernel.__name__ == step.slug


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda x, y: ([1.0], y), TypeError, "x is a list, not an array"),
        (lambda x, y: (x, y[:, :1]), ValueError, "y is 2 x 1 x 4 x 8, but NHWC of this conversion is 2 x 4 x 4 x 8"),
        (lambda x, y: (x.transpose(0, 1, 3, 2), y), ValueError, "steps take arrays in C order, but x is not"),
        (lambda x, y: (x, y.astype(np.float64)), TypeError, "x holds float32 and y float64"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(step, change, error, words):
    x, y, problem = Conversion(2, 8, 4, 4).operands()
    with pytest.raises(error, match=words):
        step.launches(*change(x, y), problem)


def test_a_conversion_that_is_no_transpose_is_refused(step):
    problem = Conversion(1, 8, 4, 4, "NHWC", "NCHW_VECT_C")
    with pytest.raises(ValueError, match="this step transposes matrices, but .* NHWC to NCHW_VECT_C4 does not"):
        step.launches(*problem.operands())


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("format", STEPS.formats, ids=str)
def test_a_step_is_right_on_the_gpu(step, format):
    for problem in (*step.examples, Conversion(2, 96, 28, 28), Conversion(2, 3, 56, 60, "NHWC", "NCHW")):
        if takes(step, problem, format):
            before = problem.operands(format, seed=4)
            x, y = map(cuda.to_device, before[:2])
            step.launch(x, y, problem, format=format)
            assert problem.is_right(before, (x, y.copy_to_host()), format)


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("problem", STEPS.step("padded").examples, ids=str)
def test_a_twin_is_right_on_the_gpu(problem):
    before = problem.operands(seed=5)
    (launch,) = STEPS.step("padded").launches(*map(cuda.to_device, before[:2]), problem)
    x, y = launch.arguments
    cpp.kernel("layouts/transpose/s03_padded")[launch.grid, launch.block](x, y, *problem.cpp_sizes())
    assert problem.is_right(before, (x, y.copy_to_host().view(np.float32).reshape(before[1].shape)))


@pytest.mark.needs("gpu")
def test_more_elements_than_32_bits_with_a_sign_count(step):
    problem = Conversion(2**31 // (256 * 64 * 64) + 1, 256, 64, 64)
    bits = np.random.default_rng(1).integers(0, 1 << 16, 1_000_003, np.uint16)  # a prime period
    x = cuda.to_device(np.resize(bits, prod(problem.shape("NCHW"))).reshape(problem.shape("NCHW")))
    y = cuda.device_array(problem.shape("NHWC"), np.uint16)
    step.launch(x, y, problem, format=BF16)
    assert (y[-1].copy_to_host() == x[-1].copy_to_host().transpose(1, 2, 0)).all()
    assert (y[0].copy_to_host() == x[0].copy_to_host().transpose(1, 2, 0)).all()
