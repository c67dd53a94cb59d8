"""Other answers to exercise 04.3."""

from . import Variant

VARIANTS = (
    Variant("the batch that the exercise starts with", "budget", (("BATCH = 8", "BATCH = 1"),)),
    Variant("half of it", "budget", (("BATCH = 8", "BATCH = 4"),)),
    Variant("one too few", "budget", (("BATCH = 8", "BATCH = 7"),)),
    Variant("one too many", "budget", (("BATCH = 8", "BATCH = 17"),)),
    Variant("room for any number of inputs", "budget", (("BATCH = 8", "BATCH = 1000"),)),
    Variant("no batch", "launch", (("BATCH = 8", "BATCH = 0"),)),
    Variant("no whole number", "launch", (("BATCH = 8", "BATCH = 8.0"),)),
    Variant("sums of the batch before", "result", (("totals[b] = np.float32(0)", "totals[b] = np.float32(1)"),)),
    Variant("a length of the book's", "result", (("range(lane, A.shape[1], 32)", "range(lane, 64, 32)"),)),
    Variant(
        "at least 32 columns",
        "bounds",
        (("range(lane, A.shape[1], 32)", "range(lane, max(32, A.shape[1]), 32)"),),
    ),
    Variant("a batch that does not divide the inputs", "solved", (("BATCH = 8", "BATCH = 11"),)),
    Variant("the largest", "solved", (("BATCH = 8", "BATCH = 16"),)),
)
