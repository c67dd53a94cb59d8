"""The bench of first calls: who is asked for what, without a GPU."""

import json
from types import SimpleNamespace

import numpy as np

from labkit import conv
from labkit.bench import conv_first_calls


def test_conv_forward_is_called_as_the_layer_says():
    layer = conv.Forward(1, 2, 6, 7, 3, 3, 3, 1, 1, 1, 1, 1, 1)
    x, w, y, _ = layer.operands()
    conv_first_calls.labkit_forward(layer, x, w, y)(0)
    assert layer.is_right(layer.operands(), (x, w, y, layer))


def test_a_row_for_each_way_and_layer_is_stored(monkeypatch, tmp_path):
    asked = []

    def run(command, **_):
        asked.append(command[-1])
        row = {"step": command[-1], "problem": "a layer", "first_ms": 2.0, "time_ms": 1.0}
        return SimpleNamespace(stdout=f"a warning\n{json.dumps(row)}\n", stderr="", returncode=0)

    monkeypatch.setattr(conv_first_calls._record, "require_gpu", lambda what: SimpleNamespace(name="A GPU"))
    monkeypatch.setattr(conv_first_calls.subprocess, "run", run)
    conv_first_calls.main(out=tmp_path)
    rows = json.loads((tmp_path / "a-gpu" / "conv_first_calls.json").read_text())["rows"]
    assert [row["step"] for row in rows] == asked == list(conv_first_calls.CONTENDERS)


def test_layers_have_the_padding_that_every_way_is_told():
    for layer in conv_first_calls.LAYERS:
        assert len({layer.top, layer.bottom, layer.left, layer.right}) == 1
        assert np.unique([layer.stride_h, layer.stride_w, layer.dilation_h, layer.dilation_w, layer.groups]) == [1]
