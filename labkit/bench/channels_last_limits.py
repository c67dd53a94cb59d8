"""`labkit bench channels_last_limits`: where channels last may gain nothing, or lose.

Short pixels, depthwise layers, and a network without tensor cores.

The first layer of the cuDNN paper's Table 2 has 3 channels; with 4 or 8, the last of them zeros, its pixels are
aligned. Depthwise layers have a filter per channel. ResNet-50 runs in float32, without TF32. Each row has a partner
that differs in the layout only. Method of `channels_last`.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from labkit.bench import _record
from labkit.bench.channels_last import COLUMNS, LAYER_DTYPES, LAYOUTS, layer, networks
from labkit.conv.layers import RESNET_50_3X3, TABLE_2

NAME = "channels_last_limits"
FIRST_CHANNELS = 3, 4, 8
DEPTHWISE = RESNET_50_3X3[:3]


def main(record: bool = False, out: Path | None = None) -> None:
    gpu = _record.require_gpu("times torch's convolutions")
    rows = [row | {"operation": NAME} for row in (*layers(), *networks(("float32",)))]
    _record.print_table(f"Limits of channels last on {gpu.name}", rows, COLUMNS)
    _record.store_if_requested(NAME, rows, gpu.name, record, out)


def layers() -> Iterator[dict]:
    """Yield a row for each layer, number format and layout."""
    for dtype, layout in product(LAYER_DTYPES, LAYOUTS):
        for C in FIRST_CHANNELS:
            yield layer(C, *TABLE_2[0][1:], 0, dtype=dtype, layout=layout)
        for C, H, W, K, R, S in DEPTHWISE:
            yield layer(C, H, W, K, R, S, R // 2, dtype=dtype, layout=layout, groups=C)
