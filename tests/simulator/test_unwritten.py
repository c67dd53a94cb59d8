"""What never was written to a new device array, when it is copied to the host."""

import warnings

import numpy as np
import pytest

from labkit import cuda
from labkit.cuda.simulated import FindingWarning
from labkit.simulator import host

pytestmark = pytest.mark.skipif(cuda.on_gpu(), reason="a GPU does not know what nobody has written")


@cuda.jit
def fill(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = i


@cuda.jit
def fill_all(x):
    x[cuda.grid(1)] = 1


@cuda.jit
def fill_matrix(x):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] = 1


@cuda.jit
def keep_even(x, out, count):
    i = cuda.grid(1)
    if i < x.size and x[i] % 2 == 0:
        out[cuda.atomic.add(count, 0, 1)] = x[i]


@cuda.jit
def search(x, wanted, where):
    i = cuda.grid(1)
    if i < x.size and x[i] == wanted:
        where[0] = i


def warnings_of(run):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in shown if issubclass(w.category, FindingWarning)], [w.filename for w in shown]


def copy_after(launch, shape):
    """The warnings of a launch and of the copy that follows."""
    x = cuda.device_array(shape, np.float32)

    def run():
        launch(x)
        x.copy_to_host()

    return warnings_of(run)


def test_a_grid_that_is_rounded_down_and_where_the_copy_is():
    (message,), files = copy_after(lambda x: fill[1000 // 256, 256](x), 1000)
    assert "232 of 1,000 elements reach the host unwritten, [768] first" in message
    assert "Launch 4 blocks" in message
    assert files == [__file__]


def test_a_matrix_launched_along_one_axis():
    (message,), _ = copy_after(lambda x: fill_matrix[8, 8](x), (64, 64))
    assert "4,032 of 4,096 elements" in message and "[0, 1]" in message
    assert "two axes" in message


@cuda.jit
def skip(x):
    first = cuda.grid(1)
    for i in range(first, x.size, 4 * cuda.gridsize(1)):
        x[i] = i


@pytest.mark.parametrize("size", [100, 256, 1000])
def test_a_loop_whose_step_leaves_elements_out(size):
    x = cuda.device_array(size)
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "on_copy", lambda finding, store: told.append(finding))
        skip[2, 32](x)
        x.copy_to_host()
    (finding,) = told
    line = skip.py_func.__code__.co_firstlineno + 3
    assert finding.message.endswith(finding.remedy)
    assert finding.remedy == (
        f"The loop in line {line} steps by 256, and the grid has 64 threads, so that it leaves elements out: step by "
        "`cuda.gridsize(1)`."
    )


def test_an_array_that_no_kernel_wrote():
    (message,), _ = copy_after(lambda x: None, 8)
    assert "before anything has written to it" in message


def test_np_asarray_copies_too():
    (message,), _ = warnings_of(lambda: np.asarray(cuda.device_array(4)))
    assert "before anything has written to it" in message


RIGHT = {
    "a grid that covers all": (lambda x: fill[4, 256](x), 1000),
    "written by the host": (lambda x: x.copy_to_device(np.zeros(8, np.float32)), 8),
    "in two launches": (lambda x: (fill[1, 32](x[:32]), fill[1, 32](x[32:])), 64),
    "as many as there are results": (
        lambda x: keep_even[1, 64](np.arange(64), x, np.zeros(1, np.int32)), 64,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_right_programs_copy_in_silence(case):
    assert copy_after(*RIGHT[case])[0] == []


def test_a_launch_with_nothing_to_store_is_no_error():
    where = np.full(1, -1)
    assert warnings_of(lambda: search[1, 32](np.arange(20), 99, where))[0] == []


def test_an_error_of_the_launch_is_told_alone():
    messages, _ = copy_after(lambda x: fill_all[5, 256](x[:1000]), 1001)
    assert len(messages) == 1 and "x has 1000 elements" in messages[0]
