"""Other answers to share-the-weights."""

from . import Answer, right, shortcut, wrong

VARIANTS = (
    Answer("the batch that the exercise starts with", "budget", (("BATCH = 8", "BATCH = 1"),)),
    Answer("half of it", "budget", (("BATCH = 8", "BATCH = 4"),)),
    Answer("one too few", "budget", (("BATCH = 8", "BATCH = 7"),)),
    Answer("one too many", "budget", (("BATCH = 8", "BATCH = 17"),)),
    Answer("room for any number of inputs", "budget", (("BATCH = 8", "BATCH = 1000"),)),
    Answer("no batch", "launch", (("BATCH = 8", "BATCH = 0"),)),
    Answer("no whole number", "launch", (("BATCH = 8", "BATCH = 8.0"),)),
    Answer("sums of the batch before", "result", (("totals[b] = np.float32(0)", "totals[b] = np.float32(1)"),)),
    Answer("a length of the book's", "result", (("range(lane, A.shape[1], 32)", "range(lane, 64, 32)"),)),
    Answer(
        "at least 32 columns",
        "bounds",
        (("range(lane, A.shape[1], 32)", "range(lane, max(32, A.shape[1]), 32)"),),
    ),
    Answer("a batch that does not divide the inputs", "solved", (("BATCH = 8", "BATCH = 11"),)),
    Answer("the largest", "solved", (("BATCH = 8", "BATCH = 16"),)),
    Answer(
        "the lanes' sums not put together",
        "result",
        (("warp_sum(totals[b])", "totals[b]"),),
        mistake="lane 0 stored its own sums",
    ),
    Answer(
        "sums that are zeroed once",
        "result",
        (
            (
                "            totals[b] = np.float32(0)\n",
                "            totals[b] = np.float32(0) if first == 0 else totals[b]\n",
            ),
        ),
        mistake="each sum began with that of the batch before",
    ),
)

RIGHT = (
    right("ten", ("BATCH = 8", "BATCH = 2 * 5")),
    right("twelve, in steps", ("BATCH = 8", "BATCH = 8\nBATCH += 4")),
)

WRONG = (
    wrong(
        "zeros are not stored",
        ("Y[first + b, row] = total", "if total != 0:\n                    Y[first + b, row] = total"),
    ),
    wrong("the inputs that are published", ("range(0, inputs, BATCH)", "range(0, min(inputs, 72), BATCH)")),
    wrong("the columns that are published", ("range(lane, A.shape[1], 32)", "range(lane, min(A.shape[1], 120), 32)")),
    wrong(
        "batches that are always full",
        (
            "            for b in range(min(BATCH, inputs - first)):\n                totals",
            "            for b in range(BATCH):\n                totals",
        ),
        (
            "for b in range(min(BATCH, inputs - first)):\n            total =",
            "for b in range(BATCH):\n            total =",
        ),
    ),
    wrong("no batch that is not full", ("range(0, inputs, BATCH)", "range(0, inputs - BATCH + 1, BATCH)")),
)

SHORTCUTS = (
    shortcut(
        "two sums in one complex number",
        ("BATCH = 8", "BATCH = 24"),
        ("cuda.local.array(BATCH, np.float32)", "cuda.local.array(12, np.complex64)"),
        ("totals[b] = np.float32(0)", "totals[b // 2] = np.complex64(0)"),
        (
            "totals[b] += a * X[first + b, k]",
            "v = a * X[first + b, k]\n                "
            "totals[b // 2] += np.complex64(complex(v, 0) if b % 2 == 0 else complex(0, v))",
        ),
        (
            "warp_sum(totals[b])",
            "warp_sum(np.float32(totals[b // 2].real if b % 2 == 0 else totals[b // 2].imag))",
        ),
    ),
    shortcut(
        "one input at a time, by atomics",
        ("BATCH = 8", "BATCH = 1"),
        ("a = A[row, k]", "a = cuda.atomic.add(A, (row, k), np.float32(0))"),
    ),
    shortcut(
        "one input at a time, the inputs by atomics",
        ("BATCH = 8", "BATCH = 1"),
        ("a * X[first + b, k]", "a * cuda.atomic.add(X, (first + b, k), np.float32(0))"),
    ),
    shortcut(
        "sums in shared memory",
        ("BATCH = 8", "BATCH = 24"),
        (
            "totals = cuda.local.array(BATCH, np.float32)",
            "of_lanes = cuda.shared.array((BATCH, 32), np.float32)\n    totals = of_lanes[:, lane]",
        ),
    ),
)
