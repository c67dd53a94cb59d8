"""`labkit.nn.scaled_dot_product_attention` is torch's, with its gradients."""

from functools import partial

import pytest

pytestmark = [pytest.mark.needs("torch"), pytest.mark.filterwarnings("ignore:labkit.nn computes tensors of the host")]

torch = pytest.importorskip("torch")

from torch.nn.functional import scaled_dot_product_attention as of_torch  # noqa: E402

from labkit import nn  # noqa: E402

from .held import assert_alike, assert_compiled  # noqa: E402


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


CASES = {
    "plain": (dict(q=(2, 3, 20, 16), k=(2, 3, 33, 16)), {}),
    "causal": (dict(q=(1, 2, 40, 8), k=(1, 2, 40, 8)), {"is_causal": True}),
    "shared keys": (dict(q=(1, 4, 9, 8), k=(1, 2, 11, 8)), {"enable_gqa": True}),
    "scale": (dict(q=(1, 1, 5, 8), k=(1, 1, 5, 8)), {"scale": 0.7}),
    "no batch": (dict(q=(2, 5, 8), k=(2, 6, 8)), {}),
    "two batches": (dict(q=(2, 2, 1, 5, 8), k=(2, 2, 1, 6, 8)), {}),
    "one batch of keys for two of queries": (dict(q=(2, 2, 5, 8), k=(1, 2, 6, 8)), {}),
    "no batch of queries": (dict(q=(2, 5, 8), k=(3, 2, 6, 8)), {}),
    "causal, keys that none sees": (dict(q=(1, 2, 5, 8), k=(1, 2, 9, 8)), {"is_causal": True}),
    "causal, queries that see all": (
        dict(q=(1, 4, 9, 8), k=(1, 2, 5, 8)),
        {"is_causal": True, "enable_gqa": True} | {"scale": 0.7},
    ),
    "batches of none": (dict(q=(0, 2, 5, 8), k=(0, 2, 6, 8)), {}),
    "no queries": (dict(q=(1, 2, 0, 8), k=(1, 2, 6, 8)), {"is_causal": True}),
    "no keys": (dict(q=(1, 2, 3, 8), k=(1, 2, 0, 8)), {}),
}


@pytest.mark.parametrize(("shapes", "options"), CASES.values(), ids=CASES)
@pytest.mark.sample(7)
def test_it_is_torchs(shapes, options):
    q, k = (random(*shape) for shape in shapes.values())
    v = random(*k.shape) + 1
    assert_alike(lambda *X: nn.scaled_dot_product_attention(*X, **options), lambda *X: of_torch(*X, **options), q, k, v)


def test_views_are_taken_where_they_lie_and_the_result_lies_as_the_query():
    packed = random(2, 12, 3, 4, 8)  # positions before heads, as a projection makes them
    heads = [packed[:, :, n].transpose(1, 2) for n in range(3)]
    result = nn.scaled_dot_product_attention(*heads, is_causal=True)
    torch.testing.assert_close(result, of_torch(*heads, is_causal=True))
    assert result.transpose(1, 2).is_contiguous()


def test_rows_that_lie_apart_are_copied():
    heads = [random(1, 2, 8, 6).transpose(2, 3) for _ in range(3)]
    torch.testing.assert_close(nn.scaled_dot_product_attention(*heads), of_torch(*heads))


def test_a_window_is_the_mask_of_a_band():
    q, k, v = (random(1, 2, 12, 8) + n for n in range(3))
    places = torch.arange(12)
    mask = (places[:, None] - places).abs() < 3
    ours = partial(nn.scaled_dot_product_attention, window=3)
    assert_alike(ours, partial(of_torch, attn_mask=mask), q, k, v)


def test_the_compiler_keeps_it_whole():
    q, k, v = (random(1, 2, 12, 8).requires_grad_() for _ in range(3))
    assert_compiled(lambda *X: nn.scaled_dot_product_attention(*X, is_causal=True) * 2, q, k, v)


def test_the_operators_are_what_torch_wants_of_operators():
    q, k, v = (random(1, 2, 4, 8).requires_grad_() for _ in range(3))
    torch.library.opcheck(torch.ops.labkit.attention, (q, k, v, True, None, None))


REFUSED = {
    "a mask": ({"attn_mask": torch.ones(1)}, NotImplementedError, "attn_mask is not computed here"),
    "a little dropout": ({"dropout_p": 0.01}, NotImplementedError, "dropout_p is not computed here"),
    "a window beside other keys": (
        {"window": 2, "enable_gqa": True},
        ValueError,
        "window is not computed for 7 queries and 6 keys: give as many of both",
    ),
    "heads that share unsaid": ({}, ValueError, "say enable_gqa=True"),
}


@pytest.mark.parametrize(("options", "kind", "words"), REFUSED.values(), ids=REFUSED)
def test_what_torch_computes_otherwise_is_refused(options, kind, words):
    with pytest.raises(kind, match=words):
        nn.scaled_dot_product_attention(random(1, 4, 7, 8), random(1, 2, 6, 8), random(1, 2, 6, 8), **options)


MISSHAPEN = {
    "no heads": ([(5, 8)] * 3, "query is 5 x 8: give it the axes of batches, if any, heads, positions and D"),
    "other batches": (
        [(2, 3, 2, 5, 8), (3, 2, 2, 5, 8), (3, 2, 2, 5, 8)],
        "key 3 x 2 x 2 x 5 x 8 and value 3 x 2 x 2 x 5 x 8: expand them to the same",
    ),
    "wider values": ([(1, 2, 5, 8), (1, 2, 5, 8), (1, 2, 5, 16)], "V is 1 x 2 x 5 x 16, but 1 x 2 x 5 x 8 beside"),
}


@pytest.mark.parametrize(("shapes", "why"), MISSHAPEN.values(), ids=MISSHAPEN)
def test_tensors_that_do_not_fit_are_refused_in_a_sentence(shapes, why):
    with pytest.raises(ValueError, match=why):
        nn.scaled_dot_product_attention(*(random(*shape) for shape in shapes))


def test_an_array_is_refused_in_a_sentence():
    q = random(1, 2, 4, 8)
    with pytest.raises(TypeError, match="key is a ndarray, not a tensor: make it one with torch.from_numpy"):
        nn.scaled_dot_product_attention(q, q.cpu().numpy(), q)


def test_a_second_derivative_is_refused_in_a_sentence():
    q, k, v = (random(1, 1, 4, 8).requires_grad_() for _ in range(3))
    (dq,) = torch.autograd.grad(nn.scaled_dot_product_attention(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="attention has no second derivative in labkit"):
        dq.sum().backward()
