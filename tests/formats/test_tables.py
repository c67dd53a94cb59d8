"""Tables of formats, which are read from the formats' files, and what they ask of them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labkit import formats, ptx
from labkit.arrays.element_types import BITS, numpy_type
from labkit.arrays.operands import TYPE_NAMES
from labkit.formats import FORMATS, FP32, SYMBOLS, TYPES
from labkit.machine.gpus import GPUS

FOLDER = Path(formats.__file__).parent
KERNELS = {symbol: format for symbol, format in SYMBOLS.items() if format.number is not None}


def test_every_file_of_the_folder_is_a_format():
    assert sorted(FORMATS) == sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
    for symbol, format in SYMBOLS.items():
        assert getattr(formats, symbol) is format is FORMATS[format.name]


def test_no_two_formats_have_the_same_number_or_type():
    for attribute in ("number", "type_name", "ptx_name"):
        known = [getattr(format, attribute) for format in FORMATS.values() if getattr(format, attribute) is not None]
        assert len(known) == len(set(known)), attribute


def test_kernels_and_formats_have_the_same_numbers():
    for symbol, format in KERNELS.items():
        assert format == FP32 or getattr(ptx, symbol) == format.number
    assert not hasattr(ptx, "FP32") and not hasattr(ptx, "E2M1")
    numbers = ptx.BF16, ptx.FP16, ptx.TF32, ptx.E4M3, ptx.INT8
    assert numbers == (0, 1, 2, 3, 4)  # which compiled kernels and records hold


def test_what_multiplies_a_format_has_a_peak_on_a_gpu():
    peaks = {name for gpu in GPUS.values() for name in gpu.peak_tflops}
    for format in FORMATS.values():
        assert format.arithmetic is None or format.arithmetic in peaks, format
        assert (format.arithmetic is None) == (format.number is None), f"no kernel computes {format}, or it has a rate"


def test_types_of_tensors_are_held_as_bits_where_numpy_has_none():
    assert BITS["float8_e5m2"] == np.uint8 and BITS["bfloat16"] == np.uint16 and "float16" not in BITS
    for name, format in TYPES.items():
        assert numpy_type(name) == format.dtype and TYPE_NAMES[format] == name


@pytest.mark.needs("torch")
def test_torch_has_the_types():
    import torch

    for name, format in TYPES.items():
        assert getattr(torch, name).itemsize == format.itemsize


def test_formats_need_numpy_alone():
    code = "import sys, json, labkit.formats; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & {"numba", "torch", "matplotlib", "IPython", "scipy"} and "numpy" in loaded
    assert not [name for name in json.loads(done.stdout) if name.startswith("labkit.") and "formats" not in name]
