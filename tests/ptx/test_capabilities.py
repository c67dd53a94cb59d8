"""Every instruction assembles for the GPUs that have it, and is refused in a sentence for one that lacks it."""

from importlib import import_module
from pathlib import Path

import pytest
from cells import kernel_in
from test_compile import assembled

from labkit import ptx
from labkit.ptx.capabilities import CAPABILITIES, is_missing
from labkit.ptx.formats import NUMBERS
from labkit.simulator.errors import LaunchError

pytestmark = [pytest.mark.needs("numba-cuda"), pytest.mark.needs("toolkit")]

KERNEL = """
@cuda.jit
def kernel(x, words, tensor_map, pixel_map, sums):
    tile = cuda.shared.array((64, 64), uint16, alignment=1024)
    part = cuda.shared.array(64, float32, alignment=16)
    barriers = cuda.shared.array(4, uint64)
    acc = cuda.local.array(8, KIND)
    t = cuda.threadIdx.x
    q = words[t]
    for i in range(8):
        acc[i] = words[i]
    {line}
    for i in range(8):
        words[i] = int(acc[i])
    words[t] = q + tile[t, 0]
"""
CONSTANTS = [*NUMBERS, "MN_MAJOR", "K_MAJOR"]
ANY, ADA, HOPPER, HOPPER_ALONE = (7, 5), (8, 9), (9, 0), (9, 0, "a")
TESTS = [import_module(path.stem) for path in sorted(Path(__file__).parent.glob("*/test_*.py"))]
LINES = {
    "ptx.fence_async()": (9, 0),
    "q = ptx.shared_array(4096, (8, 4), uint16)[t % 8, 1]": (7, 5),
    **{line: least for module in TESTS for line, least in getattr(module, "LINES", {}).items()},
}
OLDER = {(8, 0): (7, 5), ADA: (8, 6), HOPPER: (8, 9), HOPPER_ALONE: (10, 0)}


def compiled(line, target):
    from numba import types

    from labkit.cuda.compiling import ptx_text
    from labkit.ptx.tensor_copies.map_types import PixelMapType, TensorMapType

    kind = types.int32 if "INT8" in line else types.float32
    constants = {f"ptx.{name}": f"THE_{name}" for name in CONSTANTS} | {"ptx.MINUS": "MINUS"}
    names = {f"THE_{name}": getattr(ptx, name) for name in CONSTANTS} | {"MINUS": -1}
    for written, constant in constants.items():
        line = line.replace(written, constant)
    numbers = {name: getattr(types, name) for name in ("uint16", "uint64", "float32")}
    kernel = kernel_in(KERNEL.format(line=line), ptx=ptx, KIND=kind, **numbers, **names)
    arrays = types.Array(types.uint16, 2, "C"), types.Array(types.uint32, 1, "C")
    arguments = *arrays, TensorMapType(2), PixelMapType(), types.Array(types.float32, 1, "C")
    return ptx_text(kernel, arguments, target)


@pytest.mark.parametrize("line, least", LINES.items(), ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.sample(30)
def test_an_instruction_assembles_from_the_capability_on_that_is_stated(line, least, tmp_path):
    _, cubin = assembled(compiled(line, least), least, tmp_path)
    assert cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize(
    "line, least",
    [(line, least) for line, least in LINES.items() if least in OLDER],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_gpu_without_it_gets_a_sentence(line, least):
    written = f"{least[0]}.{least[1]}"
    with pytest.raises(LaunchError, match=rf"needs a GPU of compute capability {written}.*labkit.simulate"):
        compiled(line, OLDER[least])


def test_the_format_is_named_where_it_makes_the_difference():
    with pytest.raises(LaunchError) as raised:
        compiled("ptx.mma(acc, 4, (q, q, q, q), (q, q), ptx.E4M3)", (8, 0))
    assert str(raised.value) == (
        "`ptx.mma` of E4M3 needs a GPU of compute capability 8.9, and this one has 8.0; `labkit.simulate` runs the "
        "kernel anyway"
    )
    assert "mma.sync" in compiled("ptx.mma(acc, 4, (q, q, q, q), (q, q), ptx.BF16)", (8, 0))  # in the same process


def test_every_instruction_has_a_line_here_and_the_table_no_other():
    called = {line.split("ptx.")[1].split("(")[0] for line in LINES}
    everywhere = {"load2", "load4", "store2", "store4", *CONSTANTS, "TensorMap", "PixelMap"}
    assert called == {*ptx.__all__} - everywhere
    assert {key if isinstance(key, str) else key[0] for key in CAPABILITIES} <= called


def test_what_one_architecture_alone_has_no_later_one_has():
    assert not is_missing((9, 0), (9, 0, "a")) and not is_missing((9, 0, "a"), (9, 0, "a"))
    assert is_missing((10, 0), (9, 0, "a")) and is_missing((8, 9), (9, 0, "a"))
    assert is_missing((8, 0), (8, 9)) and not is_missing((12, 0), (8, 9))
