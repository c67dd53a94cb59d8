from labkit.blas import dot, gemv_t
from labkit.book import surroundings
from labkit.gemm import general


def test_instructions_are_seen_by_either_name():
    imported = surroundings.instructions(gemv_t.kernel.py_func)
    assert {"load4", "store4"} <= imported and "TensorMap" not in imported
    assert "load4" in surroundings.instructions(dot.kernel.py_func)  # in a function that the kernel calls
    assert {"launch_wait", "wgmma_major", "tma_prefetch"} <= surroundings.instructions(general.py_func)
