"""The tables hold together: published figures agree, and a wrong name is told the right ones."""

import pytest

from labkit.machine.gpus import CPUS, GPUS, cpu, gpu

FP32_LANES = 64, 128  # of an SM, by its architecture


def fp32_lanes(device):
    """The lanes of an SM that make the float32 peak, with a multiplication and an addition per clock."""
    return device.peak_tflops["float32"] * 1000 / (2 * device.clock_ghz * device.sms)


@pytest.mark.parametrize("device", GPUS.values(), ids=GPUS)
def test_float32_peak_is_lanes_times_clock(device):
    alike = [gpu for gpu in GPUS.values() if gpu.compute_capability == device.compute_capability]
    assert any(all(fp32_lanes(gpu) == pytest.approx(lanes, rel=0.02) for gpu in alike) for lanes in FP32_LANES)


@pytest.mark.parametrize("device", GPUS.values(), ids=GPUS)
def test_shared_memory_fits_into_l1_and_a_block_into_an_sm(device):
    assert device.shared_bytes_per_block <= device.shared_bytes_per_sm <= device.l1_bytes
    assert device.threads_per_block <= device.threads_per_sm


def test_h100_tensor_peak_is_the_dense_one():
    assert gpu("H100 SXM").peak_tflops["float16 tensor"] == pytest.approx(989.4)


@pytest.mark.parametrize("device", CPUS.values(), ids=CPUS)
def test_cpu_caches_grow_and_divide_into_sets(device):
    sizes = [level.bytes for level in device.caches]
    assert sizes == sorted(sizes)
    assert all(level.bytes % (level.ways * level.line_bytes) == 0 for level in device.caches)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(KeyError) as caught:
        gpu("H100")
    assert str(caught.value).startswith("there is no GPU called 'H100'; choose one of ")
    assert "H100 SXM" in str(caught.value)
    with pytest.raises(KeyError, match="CPU"):
        cpu("Z80")


@pytest.mark.parametrize("given", [GPUS["H200"], 3, None], ids=["Gpu", "int", "NoneType"])
def test_what_is_no_name_is_refused_in_a_sentence(given):
    with pytest.raises(KeyError, match="a GPU is given by its name, not by (Gpu|int|NoneType); choose one of V100, T4"):
        gpu(given)
