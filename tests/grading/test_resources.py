"""Cores and memory are those of the job or container, in both versions of control groups."""

import os
from types import SimpleNamespace

import psutil
import pytest

from labkit.grading import resources
from labkit.grading.resources import KERNEL_BYTES, count_cores, count_kernels, free_bytes

GB = 1 << 30


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Make a machine of 8 cores and 16 GB, with the files of its control groups and this process's own group."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=16 * GB))

    def make(own: str, files: dict[str, str]):
        for name, text in {"own": own, **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path, tmp_path / "own"

    return make


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/\n", {}, 8),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 8),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 3),
        ("4:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ("4:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ("0::/slurm/job_7/step_0\n", {"slurm/job_7/cpu.max": "200000 100000\n"}, 2),
        ("0::/pod/inner\n", {"cpu.max": "400000 100000\n", "pod/cpu.max": "300000 100000\n"}, 3),
        ("4:cpu:/docker/a\n", {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ("0::/../other\n", {"cpu.max": "100000 100000\n"}, 1),
    ],
)
def test_cores_are_those_of_the_job(job, own, files, cores):
    assert count_cores(*job(own, files)) == cores


def test_affinity_counts(job, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5}, raising=False)
    assert count_cores(*job("0::/\n", {"cpu.max": "400000 100000\n"})) == 2


SECOND = {"memory.current": f"{5 * GB}\n", "memory.stat": f"anon {GB}\ninactive_file {3 * GB}\nactive_file 9\n"}
FIRST = {
    "memory/memory.limit_in_bytes": f"{4 * GB}\n",
    "memory/memory.usage_in_bytes": f"{GB}\n",
    "memory/memory.stat": "inactive_file 7\ntotal_inactive_file 0\n",
}


@pytest.mark.parametrize(
    ("own", "files", "free"),
    [
        ("0::/\n", {}, 16),
        ("0::/\n", {"memory.max": "max\n", **SECOND}, 16),
        ("0::/\n", {"memory.max": f"{8 * GB}\n", **SECOND}, 6),
        ("0::/\n", {"memory.max": f"{GB}\n", **SECOND}, 0),
        (
            "0::/slurm/job_7\n",
            {f"slurm/{name}": text for name, text in {"memory.max": f"{9 * GB}", **SECOND}.items()},
            7,
        ),
        ("9:memory:/docker/a\n", FIRST, 3),
        ("9:memory:/\n", FIRST | {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 16),
    ],
)
def test_memory_is_that_of_the_job(job, own, files, free):
    assert free_bytes(*job(own, files)) == free * GB


@pytest.mark.parametrize(("cores", "free", "kernels"), [(8, 99, 8), (8, 5, 5), (8, 0.5, 1), (1, 99, 1)])
def test_each_kernel_has_a_core_and_finds_memory(monkeypatch, cores, free, kernels):
    monkeypatch.setattr(resources, "count_cores", lambda: cores)
    monkeypatch.setattr(resources, "free_bytes", lambda: int(free * KERNEL_BYTES))
    assert count_kernels() == kernels


def test_this_machine_has_both():
    assert count_cores() >= 1 and free_bytes() > 0
