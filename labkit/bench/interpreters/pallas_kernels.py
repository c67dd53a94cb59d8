"""Planted bugs as Pallas kernels: `python pallas_kernels.py BUG wrong|right plain|tpu|gpu` runs one in an interpreter.

plain is `interpret=True`. The other two simulate memories, copies and concurrent threads, and look for races; the
GPU's has no public name yet. All three fill new memory with NaN. A *thread* is a program of a TPU's grid, two of which
run at a time, or a warpgroup of a GPU's block. The last line says whether the output is right, wrong or NaN.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu

THREADS, ROW = 4, 128  # a thread's element is a row, the least that both machines copy
BUG, KERNEL, MACHINE = sys.argv[1:]
WRONG, ON_GPU = KERNEL == "wrong", MACHINE == "gpu"
ROWS = 3 if BUG in ("grid_larger_than_the_array", "off_by_one") else THREADS
SHARED_ROWS = 4 if BUG == "shared_array_too_small" and WRONG else 5


def load(ref, i):
    """Read a row of an array: a TPU copies it into its fast memory first."""
    if ON_GPU:
        return ref[i]

    def copied(tile):
        pltpu.sync_copy(ref.at[pl.ds(i, 1)], tile)
        return tile[0]

    return pl.run_scoped(copied, pltpu.VMEM((1, ROW), jnp.float32))


def store(ref, i, row):
    if ON_GPU:
        ref[i] = row
        return

    def copy(tile):
        tile[0] = row
        pltpu.sync_copy(tile, ref.at[pl.ds(i, 1)])

    pl.run_scoped(copy, pltpu.VMEM((1, ROW), jnp.float32))


def grid_larger_than_the_array(t, x, y, shared, barrier):
    @pl.when(t < (THREADS if WRONG else ROWS))
    def _():
        store(y, t, 2 * load(x, t))


def off_by_one(t, x, y, shared, barrier):
    @pl.when(t <= ROWS if WRONG else t < ROWS)
    def _():
        store(y, t, jnp.full(ROW, 1.0))


def negative_index(t, x, y, shared, barrier):
    left = load(x, t - 1 if WRONG else jnp.maximum(t - 1, 0))
    store(y, t, (left + load(x, t)) / 2)


def shared_array_too_small(t, x, y, shared, barrier):
    shared[t + 1] = load(x, t)
    store(y, t, shared[t + 1])


def counter_without_atomic(t, x, y, shared, barrier):
    if WRONG:
        store(y, 0, load(y, 0) + load(x, t))
    else:  # no atomics here: each thread counts on its own
        store(y, t, load(x, t))


def neighbour_update_in_place(t, x, y, shared, barrier):
    @pl.when(t < THREADS - 1)
    def _():
        store(y, t, load(y if WRONG else x, t + 1))


def block_sum_read_too_early(t, x, y, shared, barrier):
    if WRONG:
        store(y, t, load(x, t))

    @pl.when(t == 0)
    def _():
        store(y, 0, sum(load(y if WRONG else x, k) for k in range(THREADS)))


def sum_into_a_new_array(t, x, y, shared, barrier):
    store(y, t, load(y, t) + load(x, t) if WRONG else load(x, t))


def output_never_written(t, x, y, shared, barrier):
    @pl.when(t > THREADS if WRONG else t < THREADS)
    def _():
        store(y, t, load(x, t))


def shared_array_partly_filled(t, x, y, shared, barrier):
    @pl.when(t < (THREADS - 1 if WRONG else THREADS))
    def _():
        shared[t] = load(x, t)

    store(y, t, shared[t])


def copy_read_before_its_wait(t, x, y, shared, barrier):
    if ON_GPU:
        plgpu.copy_gmem_to_smem(x.at[t], shared.at[t], barrier.at[t])
        if not WRONG:
            plgpu.barrier_wait(barrier.at[t])
    else:
        copy = pltpu.make_async_copy(x.at[t], shared.at[t], barrier)
        copy.start()
        if not WRONG:
            copy.wait()
    store(y, t, shared[t])


def barrier_missing_before_read(t, x, y, shared, barrier):
    shared[t] = load(x, t)
    if not WRONG:
        plgpu.barrier_arrive(barrier)
        plgpu.barrier_wait(barrier)
    store(y, t, shared[THREADS - 1 - t])


def barrier_under_a_branch(t, x, y, shared, barrier):
    shared[t] = load(x, t)

    @pl.when(t > 0 if WRONG else t >= 0)
    def _():
        plgpu.barrier_arrive(barrier)
        plgpu.barrier_wait(barrier)

    store(y, t, shared[THREADS - 1 - t])


def verdict(x, y):
    """Compare an output with what the right kernel means."""
    pairs = {
        "grid_larger_than_the_array": (y, 2 * x),
        "off_by_one": (y, np.ones_like(x)),
        "negative_index": (y, (np.concatenate([x[:1], x[:-1]]) + x) / 2),
        "counter_without_atomic": (y.sum(0), x.sum(0)),
        "neighbour_update_in_place": (y[:-1], x[1:]),
        "block_sum_read_too_early": (y[0], x.sum(0)),
        "barrier_missing_before_read": (y, x[::-1]),
        "barrier_under_a_branch": (y, x[::-1]),
    }
    found, expected = pairs.get(BUG, (y, x))
    return "right" if np.array_equal(found, expected) else "NaN" if np.isnan(found).any() else "wrong"


def run_on_gpu(kernel, x, before):
    """Run one block; `before` is what the output holds at the start, or None for new memory."""

    def body(*refs, shared, barrier):
        t, x, y = jax.lax.axis_index("thread"), refs[0], refs[-1]
        if before is not None:
            y[t] = refs[1][t]
            plgpu.barrier_arrive(barrier)
            plgpu.barrier_wait(barrier)
        kernel(t, x, y, shared, barrier)

    is_copy = BUG == "copy_read_before_its_wait"
    memory = {
        "shared": plgpu.SMEM((SHARED_ROWS, ROW), jnp.float32),
        "barrier": plgpu.Barrier(num_barriers=THREADS) if is_copy else plgpu.Barrier(num_arrivals=THREADS),
    }
    launch = plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_types=memory,
        num_threads=THREADS,
        thread_name="thread",
        interpret=InterpretGPUParams(detect_races=True, num_cores_or_threads=THREADS),
    )
    return launch(*(array for array in (x, before) if array is not None))


def run_on_tpu(kernel, x, before):
    """Run a grid, as `run_on_gpu` does a block."""

    def body(*refs):
        kernel(pl.program_id(0), refs[0], *refs[-3:])

    inputs = [array for array in (x, before) if array is not None]
    simulated = pltpu.InterpretParams(detect_races=True, num_cores_or_threads=2)
    launch = pl.pallas_call(
        body,
        grid=(THREADS,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)] * len(inputs),
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        input_output_aliases={} if before is None else {1: 0},
        scratch_shapes=[pltpu.VMEM((SHARED_ROWS, ROW), jnp.float32), pltpu.SemaphoreType.DMA],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=True if MACHINE == "plain" else simulated,
    )
    return launch(*inputs)


if __name__ == "__main__":
    x = jnp.asarray(np.random.default_rng(0).integers(1, 100, (ROWS, ROW)), jnp.float32)
    before = {"counter_without_atomic": 0 * x, "neighbour_update_in_place": x}.get(BUG)
    y = (run_on_gpu if ON_GPU else run_on_tpu)(globals()[BUG], x, before)
    print("result:", verdict(np.asarray(x), np.asarray(y)))
