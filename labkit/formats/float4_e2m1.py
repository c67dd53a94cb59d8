"""float4_e2m1: 0, 0.5, 1, 1.5, 2, 3, 4 and 6, with a sign; two numbers in a byte.

Blocks have scales: powers of two for 32 numbers (MX), or e4m3 for 16 (NV, which scales the whole array by a float32 as
well). (Open Compute Project, Microscaling Formats Specification, 2023; PTX ISA, "Block Scaling for mma.sync".)
"""

import numpy as np

from labkit.formats.bfloat16 import BF16
from labkit.formats.float8_e4m3 import E4M3
from labkit.formats.float8_e8m0 import E8M0
from labkit.formats.kinds.block_scales import BlockScales, power_of_two_scales
from labkit.formats.kinds.mini_float import MiniFloat

E2M1 = MiniFloat(
    name="float4_e2m1",
    dtype=np.dtype(np.uint8),
    bits=4,
    exponent_bits=2,
    fraction_bits=1,
    type_name="float4_e2m1fn_x2",
    result=BF16,
    block_scales={
        "mx": BlockScales(block=32, format=E8M0, rule=power_of_two_scales),
        "nv": BlockScales(block=16, format=E4M3),
    },
)
