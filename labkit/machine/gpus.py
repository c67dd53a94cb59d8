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
_OF_AN_SM = {
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


def _gpu(name, capability, *, source, **figures):
    before_ampere = capability < (8, 0)
    reserved = 0 if before_ampere else KIB
    choices = tuple(kib * KIB for kib in _SHARED_CHOICES[capability])
    l1_kib, threads, blocks = _OF_AN_SM[capability]
    derived = {
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


_HOPPER = {
    "sms": 132,
    "clock_ghz": 1.98,
    "l2_bytes": 50 * MIB,
    "l2_partitions": 2,
    "l2_bytes_per_clock": 5120,
    "peak_tflops": {
        "float64": 33.5,
        "float32": 66.9,
        "float16": 133.8,
        "float64 tensor": 66.9,
        "tfloat32 tensor": 494.7,
        "float16 tensor": 989.4,
        "bfloat16 tensor": 989.4,
        "float8 tensor": 1978.9,
        "int8 tensor": 1978.9,
    },
}

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
            peak_tflops={"float64": 7.8, "float32": 15.7, "float16": 31.4, "float16 tensor": 125},
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
            peak_tflops={
                "float64": 0.254,
                "float32": 8.1,
                "float16": 16.2,
                "float16 tensor": 65,
                "int8 tensor": 130,
            },
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
            peak_tflops={
                "float64": 9.7,
                "float32": 19.5,
                "float16": 78,
                "float64 tensor": 19.5,
                "tfloat32 tensor": 156,
                "float16 tensor": 312,
                "bfloat16 tensor": 312,
                "int8 tensor": 624,
            },
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
            peak_tflops={
                "float64": 0.556,
                "float32": 35.6,
                "float16": 35.6,
                "tfloat32 tensor": 35.6,
                "float16 tensor": 71,
                "bfloat16 tensor": 71,
                "int8 tensor": 284,
            },
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
            peak_tflops={
                "float64": 0.473,
                "float32": 30.3,
                "float16": 30.3,
                "tfloat32 tensor": 60,
                "float16 tensor": 121,
                "bfloat16 tensor": 121,
                "float8 tensor": 242.5,
                "int8 tensor": 242.5,
            },
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
            peak_tflops={
                "float64": 1.29,
                "float32": 82.6,
                "float16": 82.6,
                "tfloat32 tensor": 82.6,
                "float16 tensor": 165.2,
                "bfloat16 tensor": 165.2,
                "float8 tensor": 330.3,
                "int8 tensor": 660.6,
            },
            source="NVIDIA Ada GPU architecture whitepaper",
        ),
        _gpu(
            "H100 PCIe",
            (9, 0),
            **_HOPPER
            | {
                "sms": 114,
                "clock_ghz": 1.755,
                "peak_tflops": {
                    "float64": 25.6,
                    "float32": 51.2,
                    "float16": 102.4,
                    "float64 tensor": 51.2,
                    "tfloat32 tensor": 378,
                    "float16 tensor": 756,
                    "bfloat16 tensor": 756,
                    "float8 tensor": 1513,
                    "int8 tensor": 1513,
                },
            },
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
            peak_tflops={
                "float64": 37,
                "float32": 75,
                "float16": 150,
                "float64 tensor": 37,
                "tfloat32 tensor": 1125,
                "float16 tensor": 2250,
                "bfloat16 tensor": 2250,
                "float8 tensor": 4500,
                "int8 tensor": 4500,
            },
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
                CacheLevel("L1", 32 * KIB, 8, 4),
                CacheLevel("L2", 256 * KIB, 4, 12),
                CacheLevel("L3", 8 * MIB, 16, 42),
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
                CacheLevel("L1", 32 * KIB, 8, 4),
                CacheLevel("L2", 512 * KIB, 8, 12),
                CacheLevel("L3", 32 * MIB, 16, 46),
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
                CacheLevel("L1", 48 * KIB, 12, 5),
                CacheLevel("L2", 1280 * KIB, 20, 14),
                CacheLevel("L3", 60 * MIB, 12, 70),
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
