"""Sizes of lowered matrices: layers against the law."""

import pytest

from labkit import conv
from labkit.views import lowered_sizes
from labkit.views.lowered_sizes import lowered_factor

LAYERS = {
    "same": conv.Forward(2, 3, 8, 8, 4, 3, 3, 1, 1, 1, 1, 1, 1),
    "valid": conv.Forward(2, 3, 8, 8, 4, 3, 3),
    "strided": conv.Forward(2, 3, 8, 8, 4, 3, 3, 2, 2, 1, 0, 1, 0),
}


def test_a_factor_is_the_matrix_over_the_images():
    for layer in LAYERS.values():
        matrix, images = layer.C * layer.R * layer.S * layer.N * layer.P * layer.Q, layer.operands()[0].size
        assert lowered_factor(layer) == pytest.approx(matrix / images)
    assert [lowered_factor(layer) for layer in LAYERS.values()] == pytest.approx([9, 9 * 36 / 64, 9 / 4])


def test_the_sentence_counts_layers_below_r_s(tmp_path):
    view = lowered_sizes("Up to R S", LAYERS)
    assert view.sentence == "Of 3 layers, 2 have a matrix that is smaller than R S times their images."
    assert view.data["table"]["rows"][1] == ["valid", 9, 1, "5.06"]
    assert all(name in view.data["charts"]["wide"] for name in ("valid", "stride 2"))
    view.save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 10_000


def test_only_square_filters_are_drawn():
    with pytest.raises(ValueError, match="oblong has no square filter"):
        lowered_sizes("Up to R S", {"oblong": conv.Forward(1, 1, 8, 8, 1, 3, 2)})
