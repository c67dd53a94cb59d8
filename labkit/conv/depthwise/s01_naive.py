"""One thread per output: it multiplies the taps of its channel's filter with the pixels under them, and adds.

The direct convolution without its loop over channels: a group is one channel, with one filter or several. The threads
of a warp compute neighbours in memory, columns in NCHW and channels in NHWC. The taps of a channel are contiguous in
both layouts.

Costs of T = R * S taps, without padding:

    2 * T       global loads per output
    0           bytes of shared memory per block

Limited by loads and by the instructions that find their addresses: each pixel is loaded T times, and so is each tap
for each output. `s02_strips` keeps both in registers.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.depthwise.vectors import as_elements, from_float32, to_float32
from labkit.conv.sizes import check_counts
from labkit.ladder import Launch

SUPPORTED = {"result": ("y",), "group_channels": (1,)}  # fields that it takes; y: outputs
TYPICAL_RATE = 3e6  # multiply-adds per microsecond, beside the time for memory
QUICK_TO_SIMULATE = True
THREADS = 256
CHANNELS_LAST = False
ELEMENT, FORMAT = np.float32, ptx.BF16  # of arrays; of 16-bit numbers


@cuda.jit
def naive(x, w, y, C, H, W, K, R, S, P, Q, stride_h, stride_w, top, left, dilation_h, dilation_w, flipped):
    i = np.uint32(cuda.grid(1))
    if i >= y.size:
        return
    # unsigned, so that one comparison finds both sides: indices before the image wrap around to large numbers
    if CHANNELS_LAST:
        k, rest = i % K, i // K
        q, rest = rest % Q, rest // Q
        p, n = rest % P, rest // P
    else:
        q, rest = i % Q, i // Q
        p, rest = rest % P, rest // P
        k, n = rest % K, rest // K
    c = k // (K // C)
    acc = np.float32(0)
    for r in range(R):
        for s in range(S):
            row = np.uint32(p * stride_h + r * dilation_h - top)
            col = np.uint32(q * stride_w + s * dilation_w - left)
            if row < H and col < W:
                tap = (R - np.uint32(1) - r) * S + S - np.uint32(1) - s if flipped else r * S + s
                pixel = ((n * H + row) * W + col) * C + c if CHANNELS_LAST else ((n * C + c) * H + row) * W + col
                acc += to_float32(x[np.uint32(pixel)]) * to_float32(w[np.uint32(k * R * S + tap)])
    y[i] = from_float32(acc)


def launches(x, w, y, problem, format):
    """y = x * w, each channel with its own filters."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    outputs = problem.N * problem.K * problem.P * problem.Q
    check_counts({"all pixels": problem.N * problem.C * problem.H * problem.W, "all outputs": outputs})
    names = "C H W K R S P Q stride_h stride_w top left dilation_h dilation_w".split()
    sizes = (np.uint32(getattr(problem, name)) for name in names)
    arrays = (as_elements(X, format) for X in (x, w, y))
    kernel = specialise_layout(problem.layout == "NHWC", format)
    return [Launch(kernel, -(-outputs // THREADS), THREADS, (*arrays, *sizes, problem.flipped))]


@cache
def specialise_layout(channels_last: bool, format):
    """Return the kernel for a layout and a format."""
    element = np.float32 if format.itemsize == 4 else np.uint16
    return specialise(naive, CHANNELS_LAST=channels_last, ELEMENT=element, FORMAT=format.number)
