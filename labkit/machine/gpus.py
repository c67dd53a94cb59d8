"""Published figures and limits of GPUs and CPUs by name, each with its source.

Tensor-core peaks are dense (a datasheet's "with sparsity" figure is twice as high) and accumulate in
float32. GB and GB/s are powers of ten, cache sizes powers of two, clocks the highest boost clock.
"""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


class UnknownDevice(KeyError):
    """A name is not in the table; the message lists the known ones."""

    def __str__(self):
        return self.args[0]


@dataclass(frozen=True)
class Latencies:
    """Cycles from a load to the next one that needs its value, by the level that holds it."""

    l1: float
    l2: float
    dram: float


@dataclass(frozen=True)
class Gpu:
    """One GPU: its resources, the limits of a launch, and its peaks in TFLOP/s by precision.

    `l1_bytes` is the L1 cache and shared memory of one SM together; `shared_bytes_per_block` is the limit of a kernel
    that opts in (others have 48 KB). Each block uses `shared_bytes_reserved` more for the system, and all in whole
    units. The shared memory of an SM has one of the sizes in `shared_bytes_choices`; the remainder is its L1. Registers
    are allocated per warp in units, from one of the SM's parts. `latencies` were measured on a GPU of the same compute
    capability; None if unknown. `l2_bytes_per_clock` is the bandwidth of L2 to all SMs: NVIDIA publishes it for V100
    and A100, and the same is assumed for Hopper; for others it is the port of 64 bytes per SM, an upper limit.
    """

    name: str
    compute_capability: tuple[int, int]
    sms: int
    clock_ghz: float
    dram_gb_s: float
    dram_gb: float
    l2_bytes: int
    l2_bytes_per_clock: int
    l1_bytes: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    threads_per_sm: int
    blocks_per_sm: int
    peak_tflops: dict[str, float]
    source: str
    shared_bytes_reserved: int
    shared_bytes_unit: int
    shared_bytes_choices: tuple[int, ...]
    latencies: Latencies | None
    threads_per_block: int = 1024
    registers_per_sm: int = 65536
    l2_partitions: int = 1
    registers_unit: int = 256
    sm_parts: int = 4

    @property
    def warps_per_sm(self) -> int:
        return self.threads_per_sm // 32


@dataclass(frozen=True)
class CacheLevel:
    """One level of a CPU's data caches; `bytes` is the part that one core can use."""

    name: str
    bytes: int
    ways: int
    latency_cycles: int
    line_bytes: int = 64


@dataclass(frozen=True)
class Cpu:
    """One CPU; peaks are those of all cores together, at the clock that all can sustain."""

    name: str
    cores: int
    clock_ghz: float
    caches: tuple[CacheLevel, ...]
    dram_gb_s: float
    peak_gflops: dict[str, float]
    source: str

    @property
    def peak_tflops(self) -> dict[str, float]:
        return {precision: gflops / 1000 for precision, gflops in self.peak_gflops.items()}


_LIMITS = (
    "CUDA C++ Programming Guide, technical specifications per compute capability; allocation units: cuda_occupancy.h"
)

# Possible sizes of an SM's shared memory, in KB, by compute capability.
_SHARED_CHOICES = {
    (7, 0): (0, 8, 16, 32, 64, 96),
    (7, 5): (32, 64),
    (8, 0): (0, 8, 16, 32, 64, 100, 132, 164),
    (8, 6): (0, 8, 16, 32, 64, 100),
    (8, 9): (0, 8, 16, 32, 64, 100),
    (9, 0): (0, 8, 16, 32, 64, 100, 132, 164, 196, 228),
    (10, 0): (0, 8, 16, 32, 64, 100, 132, 164, 196, 228),
}

# KB of L1, threads and blocks of an SM, by compute capability.
_SM_LIMITS = {
    (7, 0): (128, 2048, 32),
    (7, 5): (96, 1024, 16),
    (8, 0): (192, 2048, 32),
    (8, 6): (128, 1536, 16),
    (8, 9): (128, 1536, 24),
    (9, 0): (256, 2048, 32),
    (10, 0): (256, 2048, 32),
}

# As `labkit bench latency` measured it on an H100 SXM (results/nvidia-h100-80gb-hbm3/latency.json).
_LATENCIES = {(9, 0): Latencies(l1=40, l2=279, dram=688)}

# Peak TFLOP/s, the last six on tensor cores; None where a GPU has no such units.
_PRECISIONS = ["float64", "float32", "float16"]
_PRECISIONS += [f"{name} tensor" for name in ("float64", "tfloat32", "float16", "bfloat16", "float8", "int8")]
_PEAK_TFLOPS = {
    #              fp64    fp32    fp16    fp64    tf32    fp16    bf16     fp8    int8
    "V100":      (   7.8,   15.7,   31.4,   None,   None,    125,   None,   None,   None),
    "T4":        ( 0.254,    8.1,   16.2,   None,   None,     65,   None,   None,    130),
    "A100 SXM":  (   9.7,   19.5,     78,   19.5,    156,    312,    312,   None,    624),
    "RTX 3090":  ( 0.556,   35.6,   35.6,   None,   35.6,     71,     71,   None,    284),
    "L4":        ( 0.473,   30.3,   30.3,   None,     60,    121,    121,  242.5,  242.5),
    "RTX 4090":  (  1.29,   82.6,   82.6,   None,   82.6,  165.2,  165.2,  330.3,  660.6),
    "H100 PCIe": (  25.6,   51.2,  102.4,   51.2,    378,    756,    756,   1513,   1513),
    "H100 SXM":  (  33.5,   66.9,  133.8,   66.9,  494.7,  989.4,  989.4, 1978.9, 1978.9),
    "B200":      (    37,     75,    150,     37,   1125,   2250,   2250,   4500,   4500),
}  # fmt: skip
_PEAK_TFLOPS["H200"] = _PEAK_TFLOPS["H100 SXM"]


def _gpu(name, capability, *, source, **figures):
    before_ampere = capability < (8, 0)
    reserved = 0 if before_ampere else KIB
    choices = tuple(kib * KIB for kib in _SHARED_CHOICES[capability])
    l1_kib, threads, blocks = _SM_LIMITS[capability]
    peaks = zip(_PRECISIONS, _PEAK_TFLOPS[name], strict=True)
    derived = {
        "peak_tflops": {precision: tflops for precision, tflops in peaks if tflops is not None},
        "l1_bytes": l1_kib * KIB,
        "threads_per_sm": threads,
        "blocks_per_sm": blocks,
        "shared_bytes_per_sm": choices[-1],
        "shared_bytes_per_block": choices[-1] - reserved,
        "l2_bytes_per_clock": 64 * figures["sms"],
        "shared_bytes_reserved": reserved,
        "shared_bytes_unit": 256 if before_ampere else 128,
        "shared_bytes_choices": choices,
        "latencies": _LATENCIES.get(capability),
    }
    return Gpu(name=name, compute_capability=capability, source=f"{source}; {_LIMITS}", **derived | figures)


_HOPPER = {"sms": 132, "clock_ghz": 1.98, "l2_bytes": 50 * MIB, "l2_partitions": 2, "l2_bytes_per_clock": 5120}

GPUS: dict[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        _gpu(
            "V100",
            (7, 0),
            sms=80,
            clock_ghz=1.53,
            dram_gb_s=900,
            dram_gb=32,
            l2_bytes=6 * MIB,
            l2_bytes_per_clock=2048,
            source="NVIDIA V100 datasheet (SXM2) and Volta whitepaper",
        ),
        _gpu(
            "T4",
            (7, 5),
            sms=40,
            clock_ghz=1.59,
            dram_gb_s=320,
            dram_gb=16,
            l2_bytes=4 * MIB,
            source="NVIDIA T4 datasheet and Turing whitepaper",
        ),
        _gpu(
            "A100 SXM",
            (8, 0),
            sms=108,
            clock_ghz=1.41,
            dram_gb_s=2039,
            dram_gb=80,
            l2_bytes=40 * MIB,
            l2_partitions=2,
            l2_bytes_per_clock=5120,
            source="NVIDIA A100 80 GB datasheet and Ampere GA100 whitepaper",
        ),
        _gpu(
            "RTX 3090",
            (8, 6),
            sms=82,
            clock_ghz=1.695,
            dram_gb_s=936,
            dram_gb=24,
            l2_bytes=6 * MIB,
            source="NVIDIA Ampere GA102 whitepaper",
        ),
        _gpu(
            "L4",
            (8, 9),
            sms=58,
            clock_ghz=2.04,
            dram_gb_s=300,
            dram_gb=24,
            l2_bytes=48 * MIB,
            source="NVIDIA L4 datasheet (its tensor figures halved: they count sparsity)",
        ),
        _gpu(
            "RTX 4090",
            (8, 9),
            sms=128,
            clock_ghz=2.52,
            dram_gb_s=1008,
            dram_gb=24,
            l2_bytes=72 * MIB,
            source="NVIDIA Ada GPU architecture whitepaper",
        ),
        _gpu(
            "H100 PCIe",
            (9, 0),
            **_HOPPER | {"sms": 114, "clock_ghz": 1.755},
            dram_gb_s=2039,
            dram_gb=80,
            source="NVIDIA H100 datasheet (PCIe; its tensor figures halved: they count sparsity)",
        ),
        _gpu(
            "H100 SXM",
            (9, 0),
            **_HOPPER,
            dram_gb_s=3350,
            dram_gb=80,
            source="NVIDIA H100 datasheet (SXM5) and whitepaper; float32 at 1.98 GHz, tensor at 1.83 GHz",
        ),
        _gpu(
            "H200",
            (9, 0),
            **_HOPPER,
            dram_gb_s=4800,
            dram_gb=141,
            source="NVIDIA H200 datasheet (its tensor figures halved: they count sparsity)",
        ),
        _gpu(
            "B200",
            (10, 0),
            sms=148,
            clock_ghz=1.98,
            dram_gb_s=7700,
            dram_gb=180,
            l2_bytes=126 * MIB,
            l2_partitions=2,
            source="NVIDIA HGX B200 datasheet (an eighth of it; tensor figures halved: they count sparsity)",
        ),
    )
}

# What the driver calls them, as recorded measurements do.
GPU_BY_DRIVER_NAME = {
    "Tesla V100-SXM2-32GB": "V100",
    "Tesla T4": "T4",
    "NVIDIA A100-SXM4-80GB": "A100 SXM",
    "NVIDIA GeForce RTX 3090": "RTX 3090",
    "NVIDIA L4": "L4",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA H200": "H200",
    "NVIDIA B200": "B200",
}

CPUS: dict[str, Cpu] = {
    cpu.name: cpu
    for cpu in (
        Cpu(
            name="Core i7-6700",
            cores=4,
            clock_ghz=3.4,
            caches=(
                CacheLevel("L1", bytes=32 * KIB, ways=8, latency_cycles=4),
                CacheLevel("L2", bytes=256 * KIB, ways=4, latency_cycles=12),
                CacheLevel("L3", bytes=8 * MIB, ways=16, latency_cycles=42),
            ),
            dram_gb_s=34.1,
            peak_gflops={"float32": 435.2, "float64": 217.6},
            source="Intel ARK and optimization manual (Skylake): two 256-bit FMAs a cycle, 2 x DDR4-2133",
        ),
        Cpu(
            name="Ryzen 7 5800X",
            cores=8,
            clock_ghz=3.8,
            caches=(
                CacheLevel("L1", bytes=32 * KIB, ways=8, latency_cycles=4),
                CacheLevel("L2", bytes=512 * KIB, ways=8, latency_cycles=12),
                CacheLevel("L3", bytes=32 * MIB, ways=16, latency_cycles=46),
            ),
            dram_gb_s=51.2,
            peak_gflops={"float32": 972.8, "float64": 486.4},
            source="AMD product page, family 19h guide (Zen 3): two 256-bit FMAs a cycle, 2 x DDR4-3200",
        ),
        Cpu(
            name="Xeon Platinum 8380",
            cores=40,
            clock_ghz=2.3,
            caches=(
                CacheLevel("L1", bytes=48 * KIB, ways=12, latency_cycles=5),
                CacheLevel("L2", bytes=1280 * KIB, ways=20, latency_cycles=14),
                CacheLevel("L3", bytes=60 * MIB, ways=12, latency_cycles=70),
            ),
            dram_gb_s=204.8,
            peak_gflops={"float32": 5888, "float64": 2944},
            source="Intel ARK and optimization manual (Ice Lake): two 512-bit FMAs a cycle, 8 x DDR4-3200",
        ),
    )
}


def gpu(name: str) -> Gpu:
    """Return the figures of a GPU by its name, as in `gpu("H100 SXM")`."""
    return _find(GPUS, name, "GPU")


def cpu(name: str) -> Cpu:
    """Return the figures of a CPU by its name, as in `cpu("Ryzen 7 5800X")`."""
    return _find(CPUS, name, "CPU")


def _find(table, name, kind):
    if not isinstance(name, str):
        raise UnknownDevice(
            f"a {kind} is given by its name, not by {type(name).__name__}; choose one of {', '.join(table)}"
        )
    if name not in table:
        raise UnknownDevice(f"there is no {kind} called {name!r}; choose one of {', '.join(table)}")
    return table[name]
