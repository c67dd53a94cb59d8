"""A CPU with caches so small that 80 x 80 matrices behave on it like large ones on a real CPU."""

from labkit.machine.gpus import KIB, CacheLevel, Cpu

SMALL_CPU = Cpu(
    name="a small CPU",
    cores=1,
    clock_ghz=1.0,
    caches=(CacheLevel("L1", 4 * KIB, 8, 4), CacheLevel("L2", 32 * KIB, 8, 12)),
    dram_gb_s=4.0,
    peak_gflops={"float32": 16.0, "float64": 8.0},
    source="made up: a real CPU's caches, divided by eight and more",
)
