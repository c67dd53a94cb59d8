"""The README lists every chapter, and its blocks of Python, run one after the other as they stand, are right."""

import math
import re

import numpy as np
import pytest

from labkit import places
from labkit.book.contents import source, title_of
from labkit.exercises.contents import book_contents

README = (places.PACKAGE.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)


def test_every_chapter_has_a_row_in_order_with_its_title():
    rows = re.findall(r"^\| (\d\d) \| ([^|]+) \|", README, re.M)
    titles = {
        chapter: title_of(source(places.folder("notebooks"), chapter.slug)) for chapter in book_contents().chapters
    }
    assert rows == [(chapter.number, title) for chapter, title in titles.items()]


def test_links_to_chapters_lead_to_them_and_say_their_numbers():
    links = re.findall(r"\[[Cc]hapter (\d\d)\]\(notebooks/([\w-]+)\.ipynb\)", README)
    names = {chapter.number: chapter.name for chapter in book_contents().chapters}
    assert links and all(names[number] == name for number, name in links)
    assert len(links) == len(re.findall(r"\b[Cc]hapters? \d\d", README))


def test_its_blocks_run_from_top_to_bottom_and_are_right():
    """`CHECKS` has for a part of a block's text what must hold after the block."""
    pytest.importorskip("torch")
    names: dict = {}
    unchecked = dict(CHECKS)
    for block in BLOCKS:
        before = {name: np.array(value) for name, value in names.items() if isinstance(value, np.ndarray)}
        exec(compile(block, "README.md", "exec"), names)
        for words in [words for words in unchecked if words in block]:
            unchecked.pop(words)(names, before)
    assert not unchecked


def close(found, expected, tolerance=1e-4):
    assert np.shape(found) == np.shape(expected)
    assert np.allclose(np.asarray(found, np.float64), expected, rtol=tolerance, atol=tolerance)


def products(now, before):
    close(now["Y"].copy_to_host(), now["X2"].copy_to_host() @ now["W"].copy_to_host().T)


def convolutions(now, before):
    import torch

    x, w = torch.from_numpy(now["x"]).double().requires_grad_(), torch.from_numpy(now["w"]).double().requires_grad_()
    close(now["y"].transpose(0, 3, 1, 2), torch.nn.functional.conv2d(x, w, padding=1).detach().numpy(), 2e-2)
    y = torch.nn.functional.conv2d(torch.nn.functional.pad(x, (0, 1, 0, 1)), w, stride=2)
    y.backward(y.detach())
    close(now["dx"], x.grad.numpy(), 1e-3)
    close(now["dw"], w.grad.numpy(), 1e-3)


def norms(now, before):
    import torch

    x = torch.from_numpy(before["x"]).double().requires_grad_()
    y = torch.relu(torch.nn.functional.batch_norm(x, None, None, training=True))
    y.backward(y.detach())
    close(now["dx"], x.grad.numpy(), 1e-3)
    close(now["mean"], 0.1 * before["x"].mean((0, 2, 3)))
    close(now["rows"].mean(1), np.zeros(6))
    close((now["y"].astype(float) ** 2).mean(1), np.ones(6), 1e-3)


def activations(now, before):
    gate, up = now["rows"][:, :4].astype(float), now["rows"][:, 4:]
    close(now["y"], gate * (1 + np.vectorize(math.erf)(gate / math.sqrt(2))) / 2 * up)


def attention(now, before):
    import torch

    Q, K, V = (torch.from_numpy(now[name]).double() for name in "QKV")
    scores = Q @ K.transpose(-1, -2) / 4
    scores[0, :, :, 20:] = -math.inf
    close(now["O"], (scores.softmax(-1) @ V).numpy(), 2e-3)


def gradients_of_attention(now, before):
    import torch

    Q, K, V = (torch.from_numpy(now[name]).double().requires_grad_() for name in "QKV")
    distance = torch.arange(32)[:, None] - torch.arange(32)
    scores = (0.2 * Q @ K.transpose(-1, -2)).masked_fill((distance < 0) | (distance >= 8), -math.inf)
    O = scores.softmax(-1) @ V
    O.backward(torch.from_numpy(now["dO"]).double())
    close(now["O"], O.detach().numpy())
    for name, X in {"dQ": Q, "dK": K, "dV": V}.items():
        close(now[name], X.grad.numpy(), 1e-3)


def layers(now, before):
    assert now["tokens"].grad.shape == (2, 5, 16)
    expected = now["torch"].nn.functional.scaled_dot_product_attention(*[now["heads"]] * 3, is_causal=True)
    close(now["O"].numpy(), expected.numpy())


def layouts(now, before):
    close(now["x"], before["x"])
    close(now["y"], before["x"].transpose(0, 2, 3, 1))


CHECKS = {
    "gemm.plan": products,
    "conv.backward_data": convolutions,
    "norm.batch_norm_backward": norms,
    "elementwise.geglu": activations,
    "attention.attend_backward": gradients_of_attention,
    "attention.attend_cached": attention,
    "nn.Linear": layers,
    "layouts.convert": layouts,
}
