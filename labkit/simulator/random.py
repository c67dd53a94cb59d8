"""`cuda.random` without a GPU: numba's generator, with its states in host memory.

The functions for kernels are numba's own, whose source the simulator reads. xoroshiro128+ is by Blackman and Vigna,
"Scrambled Linear Pseudorandom Number Generators" (2018).
"""

import numpy as np
from numba.cuda.random import (
    init_xoroshiro128p_states_cpu,
    xoroshiro128p_dtype,
    xoroshiro128p_next,
    xoroshiro128p_normal_float32,
    xoroshiro128p_normal_float64,
    xoroshiro128p_uniform_float32,
    xoroshiro128p_uniform_float64,
)

from labkit.simulator.host import DeviceArray, device_array

__all__ = [
    "create_xoroshiro128p_states",
    "init_xoroshiro128p_states",
    "xoroshiro128p_dtype",
    "xoroshiro128p_next",
    "xoroshiro128p_normal_float32",
    "xoroshiro128p_normal_float64",
    "xoroshiro128p_uniform_float32",
    "xoroshiro128p_uniform_float64",
]


def create_xoroshiro128p_states(n: int, seed: int, subsequence_start: int = 0, stream=0) -> DeviceArray:
    """Make the states of `n` generators, each 2**64 numbers after the previous one."""
    states = device_array(n, dtype=xoroshiro128p_dtype)
    init_xoroshiro128p_states(states, seed, subsequence_start)
    return states


def init_xoroshiro128p_states(states: DeviceArray, seed: int, subsequence_start: int = 0, stream=0) -> None:
    """Set the states of generators, the first one `subsequence_start` times 2**64 numbers on."""
    new_states = np.empty(states.shape, xoroshiro128p_dtype)
    init_xoroshiro128p_states_cpu(new_states, seed, subsequence_start)
    states.copy_to_device(new_states)
