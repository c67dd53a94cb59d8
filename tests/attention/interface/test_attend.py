"""`attention.attend` and `attention.plan`: right for arrays as they lie, by the step that suits them, or refused."""

import re

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import attention, cuda
from labkit.attention.interface.attend import AttentionOperation
from labkit.attention.problem import ARRAYS
from labkit.calls.call import forget
from labkit.calls.plan import Plan
from labkit.formats import BF16, FP16, FP32

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
Problem = attention.AttentionForward
SETTINGS = settings(max_examples=60 if WHOLE else 5, phases=[Phase.generate], deadline=None)


@pytest.fixture(autouse=True)
def as_a_new_process():
    forget()
    yield
    forget()


def options_of(problem, format) -> dict:
    options = {name: getattr(problem, name) for name in ("causal", "window", "scale", "layout")}
    return options | {"format": str(format)}


@pytest.mark.parametrize("format", [FP32, FP16, BF16], ids=str)
def test_attention_is_right_on_random_problems(format):
    @SETTINGS
    @given(
        sizes=st.tuples(st.integers(1, 2), st.sampled_from((2, 4)), st.integers(1, 40), st.sampled_from((8, 32, 72))),
        keys=st.integers(1, 60),
        causal=st.booleans(),
        layout=st.sampled_from(("BHSD", "BSHD")),
        left_out=st.sets(st.sampled_from(("O", "lse"))),
        on=st.sampled_from(("host", "device")),
        seed=st.integers(0, 2**16),
    )
    def check(sizes, keys, causal, layout, left_out, on, seed):
        problem = Problem(*sizes, keys, 2, causal, layout=layout)
        before = problem.operands(format, seed)
        taken = {name: X.copy() if on == "host" else cuda.to_device(X) for name, X in zip(ARRAYS, before)}
        given = {name: X for name, X in taken.items() if name not in left_out}
        O = attention.attend(**given, **options_of(problem, format))
        assert "O" in left_out or O is taken["O"]
        found = {name: X if on == "host" else X.copy_to_host() for name, X in (taken | {"O": O}).items()}
        for place, right in problem.expected(before, format).items():
            name = ARRAYS[place]
            held = (format if name == "O" else FP32).decode(found[name])
            assert right.holds(held) or (name in left_out and name != "O"), name

    check()


def test_log_sum_exp_may_lie_in_any_order_on_the_host():
    problem = Problem(1, 3, 10, 8, causal=True)
    before = problem.operands()
    lse = np.full((10, 3, 1), np.nan, np.float32).T
    attention.attend(*before[:3], lse=lse, causal=True)
    assert problem.expected(before)[4].holds(lse)


def test_parts_of_one_tensor_are_taken_where_they_lie():
    problem = Problem(2, 4, 30, 16, layout="BSHD", window=7)
    before = problem.operands()
    packed = cuda.to_device(np.stack(before[:3], axis=2))  # B S 3 H D
    O = attention.attend(*(packed[:, :, n] for n in range(3)), window=7, layout="BSHD")
    assert problem.expected(before)[3].holds(O.copy_to_host())


def test_a_plan_runs_for_other_arrays_that_lie_alike():
    problem = Problem(1, 2, 33, 32, 50, causal=True)
    first, second = problem.operands(BF16, 0), problem.operands(BF16, 1)
    arrays, others = (list(map(cuda.to_device, of[:-1])) for of in (first, second))
    plan = attention.plan(**dict(zip(ARRAYS, arrays)), **options_of(problem, BF16))
    assert isinstance(plan, Plan)
    for run, before, of in ((plan, first, arrays), (lambda: plan(*others), second, others)):
        run()
        assert problem.is_right(before, (*(X.copy_to_host() for X in of), problem), BF16)
    with pytest.raises(ValueError, match="Q is of shape"):
        plan(cuda.to_device(first[0][:, :1]), *others[1:])


def test_a_second_call_finds_the_plan_of_the_first(monkeypatch):
    made, check = [], AttentionOperation.check
    monkeypatch.setattr(AttentionOperation, "check", lambda *of: made.append(of) or check(*of))
    Q, K, V, O = (cuda.to_device(X) for X in Problem(1, 1, 9, 8).operands()[:4])
    for count, options in enumerate(({}, {"causal": True}), start=1):
        attention.attend(Q, K, V, O=O, **options)
        attention.attend(Q, K, V, O=O, **options)
        assert len(made) == count


RNG = np.random.default_rng(0)
Q = RNG.standard_normal((2, 4, 6, 8)).astype(np.float32)
K = RNG.standard_normal((2, 2, 9, 8)).astype(np.float32)
REFUSED = {
    "nothing": (lambda: attention.attend(None, K, K), "Q is None: give an array"),
    "a list": (lambda: attention.attend([1], K, K), "Q is a list, not an array"),
    "a matrix": (lambda: attention.attend(Q[0, 0], K, K), "Q is 6 x 8: give it four axes, BHSD"),
    "float64": (lambda: attention.attend(Q.astype(float), K, K), "Q holds float64: give float32 or"),
    "bits": (
        lambda: attention.attend(*(np.zeros((1, 1, 8, 8), np.uint16),) * 3),
        'Q holds uint16: give float32 or bfloat16 or float16, or say format="bfloat16" if these are bits of that',
    ),
    "two types": (
        lambda: attention.attend(Q, K.astype(np.float16), K),
        "Q holds float32 and K float16: make them alike",
    ),
    "V of another length": (
        lambda: attention.attend(Q, K, K[:, :, :5]),
        "V is 2 x 2 x 5 x 8, but 2 x 2 x 9 x 8 beside these Q and K: change it",
    ),
    "K of another batch": (
        lambda: attention.attend(Q, K[:1], K),
        "K is 1 x 2 x 9 x 8, but 2 x 2 x 9 x 8 beside these Q and K",
    ),
    "K of another head_dim": (lambda: attention.attend(Q, K[..., :4], K), "K is 2 x 2 x 9 x 4, but 2 x 2 x 9 x 8"),
    "heads": (
        lambda: attention.attend(Q[:, :3], K, K),
        "Q has 3 heads and K has 2: each head of K serves as many heads of Q, so let the one be a multiple",
    ),
    "no keys": (lambda: attention.attend(Q, K[:, :, :0], K[:, :, :0]), "keys is 0, but it must be at least 1"),
    "wide heads": (
        lambda: attention.attend(*(np.zeros((1, 1, 2, 300), np.float32),) * 3),
        "head_dim is 300, but steps take up to 256: use more heads",
    ),
    "rows of no pieces": (
        lambda: attention.attend(*(np.zeros((1, 1, 2, 12), np.float16),) * 3),
        "head_dim is 12, but copies take 16 bytes at a time: make it a multiple of 8, with zeros at the end, and give "
        "the scale that you want",
    ),
    "lse of another shape": (
        lambda: attention.attend(Q, K, K, lse=np.zeros((2, 4, 7), np.float32)),
        "lse is 2 x 4 x 7, but 2 x 4 x 6 beside these Q and K: change it",
    ),
    "lse of another type": (
        lambda: attention.attend(Q, K, K, lse=np.zeros((2, 4, 6))),
        "lse holds float64, but it is to hold float32: convert it",
    ),
    "lse that is read-only": (
        lambda: attention.attend(Q, K, K, lse=np.broadcast_to(np.float32(0), (2, 4, 6))),
        "lse is read-only: pass an array that can be written to",
    ),
    "lse out of order": (
        lambda: attention.attend(*map(cuda.to_device, (Q, K, K)), lse=cuda.to_device(Q)[:, :, :, 0]),
        "lse is not in C order: give an array that is",
    ),
    "window": (lambda: attention.attend(Q, K, K, window=0), "window is 0, but a query sees its own position at least"),
    "causal": (lambda: attention.attend(Q, K, K, causal=None), "causal is None: say True or False"),
    "scale": (lambda: attention.attend(Q, K, K, scale="big"), "scale is 'big': give a number, or None for 1 / sqrt"),
    "layout": (lambda: attention.attend(Q, K, K, layout="SBHD"), "there is no layout 'SBHD': say BHSD or BSHD"),
    "format": (lambda: attention.attend(Q, K, K, format="tf32"), "tf32 is not computed here: give float32 or bfloat16"),
    "in place": (lambda: in_place(), "O shares memory with Q, which is read while O is written"),
    "a plan without O": (lambda: attention.plan(*map(cuda.to_device, (Q, K, K)), O=None), "O is None, and a plan"),
}


def in_place():
    q = cuda.to_device(Q)
    return attention.attend(q, cuda.to_device(K), cuda.to_device(K), O=q)


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_attention_is_refused_in_a_sentence(refused, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rows_may_have_gaps_between_them(dtype):
    """By a step that finds them there, where the best one does not."""
    given = [X.astype(dtype) for X in (Q, K, K)]
    wide = [cuda.to_device(np.concatenate((X, np.full_like(X, np.nan)[..., :4]), -1)) for X in given]
    O = attention.attend(*(X[:, :, :, :8] for X in wide))
    assert np.allclose(O.copy_to_host(), attention.attend(*given), atol=1e-2 if dtype is np.float16 else 1e-6)


def test_arrays_of_the_host_and_of_the_device_may_be_mixed():
    expected, into, lse = attention.attend(Q, K, K), np.zeros_like(Q), np.zeros(Q.shape[:3], np.float32)
    for arrays in ((cuda.to_device(Q), K, K), (Q, cuda.to_device(K), K)):
        O = attention.attend(*arrays)
        assert cuda.is_cuda_array(O) and (O.copy_to_host() == expected).all()
        assert attention.attend(*arrays, O=into, lse=lse) is into and (into == expected).all() and lse.all()


def test_options_are_checked_before_arrays():
    with pytest.raises(ValueError, match="window is -1"):
        AttentionOperation(window=-1)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("on", ["cpu", pytest.param("cuda", marks=pytest.mark.needs("gpu"))])
def test_results_are_those_of_torch(on):
    import torch

    Q, K, V = torch.randn(2, 4, 40, 32, device=on), *torch.randn(2, 2, 2, 40, 32, device=on)
    ours = attention.attend(Q, K, V, causal=True, scale=0.3)
    theirs = torch.nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=True, scale=0.3, enable_gqa=True)
    assert ours.device == Q.device and torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize("layout", ["BHSD", "BSHD"])
def test_tensors_of_bfloat16_are_taken_as_they_are(layout):
    import torch

    Q, K, V = (X.transpose(1, 2) for X in torch.randn(3, 2, 300, 4, 64, device="cuda", dtype=torch.bfloat16))
    given = (Q, K, V) if layout == "BHSD" else [X.transpose(1, 2) for X in (Q, K, V)]
    O = attention.attend(*given, causal=True, layout=layout)
    assert O.dtype == torch.bfloat16 and O.stride() == given[0].stride()
    theirs = torch.nn.functional.scaled_dot_product_attention(*(X.float() for X in (Q, K, V)), is_causal=True)
    ours = O if layout == "BHSD" else O.transpose(1, 2)
    assert torch.allclose(ours.float(), theirs, atol=2e-2)
