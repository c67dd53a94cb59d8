"""Descriptors have the fields of PTX's table, and the code for a GPU adds the same bits to an address."""

import re

import numpy as np
import pytest

from labkit.ptx.warpgroups import descriptors
from labkit.ptx.warpgroups.descriptors import FIELDS, k_major_descriptor


def test_a_descriptor_has_the_fields_of_the_table():
    values = {field.name: field.read(k_major_descriptor(66_560)) for field in FIELDS}
    assert values == {
        "start address": 66_560 // 16, "leading offset": 1, "stride offset": 1024 // 16, "base offset": 0, "swizzle": 1
    }  # fmt: skip
    assert k_major_descriptor(1024) == 0x4000_0040_0001_0040


def test_fields_do_not_overlap_and_an_address_is_one_of_256_kb():
    ones = [sum(1 << bit for bit in range(field.first, field.first + field.bits)) for field in FIELDS]
    assert sum(ones) == np.bitwise_or.reduce([np.uint64(one) for one in ones])
    assert descriptors.encode((1 << 18) + 32) == 2


@pytest.mark.needs("numba-cuda", "toolkit")
def test_the_code_for_a_gpu_has_these_bits():
    from launches import stated_launches, types_of

    from labkit import gemm
    from labkit.cuda.compiling import ptx_text

    _, _, launch = next(iter(stated_launches(gemm.step("tensor", "wgmma"))))
    text = ptx_text(launch.kernel.py_func, types_of(launch), (9, 0, "a"))
    constants = {int(number) for number in re.findall(r"or\.b64 \s*%\w+, %\w+, (\d+);", text)}
    fixed = descriptors.SWIZZLED_128 | descriptors.LEADING_NOT_USED
    assert constants & {descriptors.SWIZZLED_128, fixed}, "or'ed to the address"
