"""The bench of formats: what is timed for a layer, in which format and layout."""

from labkit.bench import _harness, conv_formats


def test_each_layer_is_timed_in_three_formats_of_torch_and_by_our_kernel(monkeypatch):
    def measure(table, problem, format, steps=()):
        names = [*table.ours, *(step.slug for step in steps)]
        return [(name, problem.layout, format.name, problem.P) for name in names]

    monkeypatch.setattr(_harness, "measure", measure)
    *_, strided, first = conv_formats.LAYERS
    assert conv_formats.measure(*strided) == [
        ("torch, float32", "NCHW", "float32", 28),
        ("torch, TF32", "NCHW", "float32", 28),
        ("torch, float32", "NHWC", "float32", 28),
        ("torch, TF32", "NHWC", "float32", 28),
        ("torch, bfloat16", "NHWC", "bfloat16", 28),
        ("persistent", "NHWC", "bfloat16", 28),
    ]
    assert {row[3] for row in conv_formats.measure(*first)} == {112}
