"""A kernel that adds a bias per channel to images in any layout."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import expect, last_block_size, shared_among_threads
from labkit.table import count_text

THREADS = 128
ALL_CHANNELS = 33  # this many channels together, or more, mean all of them: NHWC


def make_launch(rng, N, C, pixels, V):
    V = C if V >= ALL_CHANNELS else V
    groups = -(-C // V)
    channel = (np.arange(groups)[:, None] * V + np.arange(V))[:, None, :]  # C/V x 1 x V
    bias = rng.standard_normal(C, np.float32)
    x = rng.standard_normal((N, groups, pixels, V), np.float32)
    x = np.where((channel < C) & (rng.random(x.shape) < 0.95), x, np.float32(0))  # some zeros are data
    y = np.where(channel < C, x + np.append(bias, np.zeros(V, np.float32))[channel], 0)
    warps = -(-x.size // 32)
    i = np.arange(x.size)
    group, lane = i // (pixels * V), i % V

    def add_bias(c, pads=True):
        """Expect y if element i has the bias of channel c, and zeros for channels that are not there."""
        y = x.ravel() + bias[np.minimum(c, C - 1)]
        return {2: expect(np.where((c < C) | (not pads), y, np.float32(0)).astype(float))}

    return Launch(
        label=f"{count_text(N, 'image')}, {count_text(C, 'channel')}, {count_text(pixels, 'pixel')}, V = {V}",
        args=(x.ravel(), bias, unwritten_array((x.size,)), V, pixels),
        outputs={2: expect(y.ravel().astype(float))},
        grid=(-(-x.size // THREADS),),
        block=(THREADS,),
        budgets=(
            Budget("global loads", 2 * x.size, "per element of y, one of x and one of bias"),
            Budget(
                "sectors loaded",
                -(-x.size // 8) + 6 * warps,
                "each sector of x once, and at most 6 of bias per warp",
                {"x": -(-x.size // 8), "bias": 6 * warps},
            ),
            Budget("sectors stored", -(-x.size // 8), "each sector of y once"),
            NO_FLOAT64,
        ),
        duties=(shared_among_threads(last_block_size(x.size, THREADS), most_per_thread=1),),
        mistakes=(
            Mistake(
                "channels came first",
                lambda: add_bias(i // pixels % C),
                "Begin with the innermost axis, which has V channels.",
            ),
            Mistake(
                "channels came last, without groups",
                lambda: add_bias(i % C),
                "`i % V` is the place in a group: add V for each group before it.",
            ),
            Mistake(
                "an image had C groups",
                lambda: add_bias(group % C * V + lane),
                "Take the number of groups in place of C in the remainder.",
            ),
            Mistake(
                "there were one image",
                lambda: add_bias(group * V + lane),
                "Begin to count the groups anew with each image: take the remainder by their number.",
            ),
            Mistake(
                "all channels of a group had one bias",
                lambda: add_bias(group % groups * V),
                "Add the place in the group, `i % V`.",
            ),
            Mistake(
                "all groups had the bias of the first",
                lambda: add_bias(lane),
                "Add V channels for each group before this one.",
            ),
            Mistake(
                "the last bias were added to the padding",
                lambda: add_bias(group % groups * V + lane, False),
                "Channels that are not there stay 0: test the channel before you add.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="A bias in any layout",
    task="- **Given**: x and y are flat, as memory is: images of C/V x pixels x V, one after the other. "
    "V is 1 in NCHW, C in NHWC, and 4 or 32 in NCHW_VECT_C. bias has C elements. The kernel is right for NCHW.\n"
    "- **Change** it so that it adds to each element of x the bias of its channel, in any layout. Padding stays 0.\n"
    "- **Limits**: a thread per element, at the element's own place; 128 per block; no float64.\n"
    "- **Sizes**: any number of images, channels and pixels; V need not divide C.",
    points=3,
    function="add_bias",
    make_launch=make_launch,
    sizes=(
        (2, 5, 33, 1),
        (2, 6, 33, ALL_CHANNELS),
        (2, 6, 21, 4),
        (2, 3, 41, 1),  # 41 times the float32 nearest to 1/41 is less than 1
    ),  # images, C, pixels, V
    random_sizes=(
        ((1, 3), range(33, 60), range(5, 30), (4, 32)),
        ((2, 4), range(3, 40), range(17, 40), (ALL_CHANNELS,)),
        ((2, 3), range(7, 13), (1, 2, 49), (1, ALL_CHANNELS)),
        (Above(4), (35, 38), range(6, 12), (1, 4)),
        ((1, 2), Above(100), range(2, 9), (32,)),
        ((1, 2), Above(100), range(2, 9), (ALL_CHANNELS,)),
        ((2,), (5, 6), Above(49), (1, 4)),
    ),
)
