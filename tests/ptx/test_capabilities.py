"""Every instruction assembles for the GPUs that have it, and is refused in a sentence for one that lacks it."""

import pytest
from cells import kernel_in
from test_compile import assembled

from labkit import ptx
from labkit.ptx.capabilities import CAPABILITIES, is_missing
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
MMA = "ptx.mma(acc, 4, (q, q, q, q), (q, q), {})"
FORMATS = "BF16 FP16 TF32 E4M3 INT8".split()
CONSTANTS = [*FORMATS, "MN_MAJOR", "K_MAJOR"]
ANY, ADA, HOPPER, HOPPER_ALONE = (7, 5), (8, 9), (9, 0), (9, 0, "a")
LINES = {
    "ptx.cp_async(tile, (t, 8), x, (t, 8), 16, q)": (8, 0),
    "ptx.cp_async(tile, (t, 8), x, (t, 8), 4, 4)": (8, 0),
    "ptx.cp_async_commit()": (8, 0),
    "ptx.cp_async_wait(2)": (8, 0),
    "q = ptx.pack2(1.5, q, ptx.BF16)": (8, 0),
    "q = ptx.pack2(1.5, q, ptx.FP16)": (8, 0),
    "q = ptx.pack4(1.5, q, q, q, ptx.E4M3)": ADA,
    "q = int(ptx.unpack2(q, ptx.BF16)[1])": ANY,
    "q = int(ptx.unpack2(q, ptx.FP16)[1])": ANY,
    "q = ptx.to_tf32(q)": (8, 0),
    "q = ptx.ldmatrix2(tile, (t, 8))[1]": ANY,
    "q = ptx.ldmatrix4(tile, (t, 8))[3]": ANY,
    "q = ptx.ldmatrix2_transposed(tile, (t, 8))[1]": ANY,
    "q = ptx.ldmatrix4_transposed(tile, (t, 8))[3]": ANY,
    "ptx.stmatrix4(tile, (t, 8), q, q, q, q)": HOPPER,
    "ptx.stmatrix4_transposed(tile, (t, 8), q, q, q, q)": HOPPER,
    "q = int(ptx.exp2(q))": ANY,
    **{MMA.format(f"ptx.{form}"): ADA if form == "E4M3" else (8, 0) for form in FORMATS},
    "ptx.mbarrier_init(barriers, 1, 32)": (8, 0),
    "ptx.mbarrier_arrive(barriers, 1)": (8, 0),
    "ptx.mbarrier_init_fence()": HOPPER,
    "ptx.mbarrier_expect(barriers, 1, 4096)": HOPPER,
    "ptx.mbarrier_wait(barriers, 1, 0)": HOPPER,
    "ptx.mbarrier_arrive_at(barriers, 1, 0)": HOPPER,
    "q = ptx.shared_array(4096, (8, 4), uint16)[t % 8, 1]": ANY,
    "ptx.barrier_arrive(1, 64)": ANY,
    "ptx.barrier_arrive(1 + q, 64)": ANY,
    "ptx.barrier_sync(1, 64)": ANY,
    "ptx.barrier_sync(1 + q, 64)": ANY,
    "q = ptx.cluster_rank()": HOPPER,
    "ptx.cluster_sync()": HOPPER,
    "q = int(ptx.cluster_load(barriers, 1, q))": HOPPER,
    "ptx.cluster_store(barriers, 1, q, 7)": HOPPER,
    "ptx.fence_async()": HOPPER,
    "ptx.tma_load(tile, (0, 0), tensor_map, (t, 64), barriers, 1)": HOPPER,
    "ptx.tma_load_multicast(tile, (0, 0), tensor_map, (t, 64), barriers, 1, 3)": HOPPER,
    "ptx.tma_load_pixels(tile, (0, 0), pixel_map, (t, t, -1, 64), (t, 2), barriers, 1)": HOPPER,
    "ptx.tma_load_pixels_multicast(tile, (0, 0), pixel_map, (t, t, -1, 64), (t, 2), barriers, 1, 3)": HOPPER,
    "ptx.tma_prefetch(tensor_map)": HOPPER,
    "ptx.launch_wait()": HOPPER,
    "ptx.launch_release()": HOPPER,
    "ptx.tma_store(tensor_map, (t, 64), tile, (0, 0))": HOPPER,
    "ptx.tma_add(sums, 4 * t, part, 8, 12)": HOPPER,
    "ptx.tma_store_commit()": HOPPER,
    "ptx.tma_store_wait(1)": HOPPER,
    "ptx.wgmma(acc, 0, 16, tile, (0, 0), tile, (0, 0), ptx.BF16)": HOPPER_ALONE,
    "ptx.wgmma_registers(acc, 0, 16, (q, q, q, q), tile, (0, 0), ptx.FP16)": HOPPER_ALONE,
    "ptx.wgmma_major(acc, 0, 16, tile, (0, 0), ptx.MN_MAJOR, tile, (0, 0), ptx.K_MAJOR, ptx.BF16)": HOPPER_ALONE,
    "ptx.wgmma_registers_major(acc, 0, 16, (q, q, q, q), tile, (0, 0), ptx.MN_MAJOR, ptx.FP16)": HOPPER_ALONE,
    "ptx.wgmma_scaled(acc, 0, 16, tile, (0, 0), ptx.K_MAJOR, tile, (0, 0), ptx.K_MAJOR, ptx.BF16, q > 1, ptx.MINUS)": (
        HOPPER_ALONE
    ),
    "ptx.wgmma_registers_scaled(acc, 0, 16, (q, q, q, q), tile, (0, 0), ptx.MN_MAJOR, ptx.FP16, False, 1)": (
        HOPPER_ALONE
    ),
    "ptx.wgmma_registers_scaled(acc, 0, 16, (q, q, q, q), tile, (0, 0), ptx.K_MAJOR, ptx.TF32, True, 1)": (
        HOPPER_ALONE
    ),
    "ptx.wgmma_fence()": HOPPER_ALONE,
    "ptx.wgmma_commit()": HOPPER_ALONE,
    "ptx.wgmma_wait(1)": HOPPER_ALONE,
    "ptx.setmaxnreg_inc(232)": HOPPER_ALONE,
    "ptx.setmaxnreg_dec(40)": HOPPER_ALONE,
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
        compiled(MMA.format("ptx.E4M3"), (8, 0))
    assert str(raised.value) == (
        "`ptx.mma` of E4M3 needs a GPU of compute capability 8.9, and this one has 8.0; `labkit.simulate` runs the "
        "kernel anyway"
    )
    assert "mma.sync" in compiled(MMA.format("ptx.BF16"), (8, 0))  # in the same process


def test_every_instruction_has_a_line_here_and_the_table_no_other():
    called = {line.split("ptx.")[1].split("(")[0] for line in LINES}
    everywhere = {"load2", "load4", "store2", "store4", *CONSTANTS, "TensorMap", "PixelMap"}
    assert called == {*ptx.__all__} - everywhere
    assert {key if isinstance(key, str) else key[0] for key in CAPABILITIES} <= called


def test_what_one_architecture_alone_has_no_later_one_has():
    assert not is_missing((9, 0), (9, 0, "a")) and not is_missing((9, 0, "a"), (9, 0, "a"))
    assert is_missing((10, 0), (9, 0, "a")) and is_missing((8, 9), (9, 0, "a"))
    assert is_missing((8, 0), (8, 9)) and not is_missing((12, 0), (8, 9))
