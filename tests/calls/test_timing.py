"""Times: medians after a warm-up."""

import time

import pytest

from labkit.calls import timing


def test_the_host_time_is_a_median_and_leaves_the_warm_up_out():
    waits_s = iter([0.2, 0.01, 0.01, 0.1, 0.01, 0.01])
    assert 9 < timing.host_time_ms(lambda: time.sleep(next(waits_s)), repeats=5) < 60


@pytest.mark.needs("gpu")
def test_the_gpu_time_is_that_of_one_launch_and_grows_with_the_work():
    from labkit import gemm

    def of(size):
        from labkit import cuda

        step = gemm.step("fp32", "coalesced")
        arrays = [cuda.to_device(x) for x in gemm.Problem(size, size, size).operands()]
        return timing.gpu_time_ms([lambda stream: step.kernel[(*step.geometry(size, size), stream)](*arrays)] * 2)

    small, large = of(256), of(1024)
    assert 0.001 < small < 1
    assert 10 * small < large < 200 * small
