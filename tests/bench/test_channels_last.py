"""The bench of channels last, without a GPU: which layers it times, and that what it times is stored."""

import json
from types import SimpleNamespace

from labkit import conv
from labkit.bench import channels_last, channels_last_limits


def test_the_layers_of_resnet_keep_their_size_and_those_of_the_paper_have_no_padding():
    sizes = [
        conv.Forward(1, C, H, W, K, R, S, 1, 1, pad, pad, pad, pad) for C, H, W, K, R, S, pad in channels_last.LAYERS
    ]
    assert all((layer.P, layer.Q) == (layer.H, layer.W) for layer in sizes[:12])
    assert all(layer.P == layer.H - layer.R + 1 for layer in sizes[12:])
    assert len(sizes) == 17 and sizes[12].C == 3


def test_rows_of_layers_and_of_the_network_are_stored(monkeypatch, tmp_path):
    row = {"step": "NHWC", "problem": "a layer", "dtype": "float32", "time_ms": 1.0, "layout_share": 0.25}
    monkeypatch.setattr(channels_last._record, "require_gpu", lambda what: SimpleNamespace(name="A GPU"))
    monkeypatch.setattr(channels_last, "layers", lambda: [row])
    monkeypatch.setattr(channels_last, "networks", lambda: [row | {"problem": "ResNet-50"}])
    channels_last.main(out=tmp_path)
    rows = json.loads((tmp_path / "a-gpu" / "channels_last.json").read_text())["rows"]
    assert [stored["problem"] for stored in rows] == ["a layer", "ResNet-50"]


def test_limits_differ_in_the_layout_only(monkeypatch, tmp_path):
    made = []

    def layer(*sizes, dtype, layout, groups=1):
        made.append((sizes, dtype, groups, layout))
        return {"step": layout, "problem": "a layer", "dtype": dtype, "time_ms": 1.0, "layout_share": 0.0}

    monkeypatch.setattr(channels_last_limits._record, "require_gpu", lambda what: SimpleNamespace(name="A GPU"))
    monkeypatch.setattr(channels_last_limits, "layer", layer)
    monkeypatch.setattr(channels_last_limits, "networks", lambda dtypes: [])
    channels_last_limits.main(out=tmp_path)
    nchw, nhwc = ([rest for *rest, layout in made if layout == wanted] for wanted in ("NCHW", "NHWC"))
    assert nchw == nhwc and len(nchw) == 2 * (3 + 3)
    assert {sizes[0] for sizes, _, groups in nchw if groups == 1} == {3, 4, 8}
    assert all(sizes[0] == sizes[3] == groups for sizes, _, groups in nchw if groups > 1)
    rows = json.loads((tmp_path / "a-gpu" / "channels_last_limits.json").read_text())["rows"]
    assert {row["operation"] for row in rows} == {"channels_last_limits"}
