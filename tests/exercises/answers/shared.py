"""Parts that the answers to several exercises share."""


def by_shuffles(lane):
    """Edits that bring A's factor from another lane's register, where the tile of A has ones."""
    return (
        ("        A_tile[y, x] = A[row", "        A_tile[y, x] = 1\n        a = A[row"),
        ("A_tile[y, k] * B", f"cuda.shfl_sync(0xFFFFFFFF, a, {lane}) * B"),
    )


def naive(function, parameters, product, store, guard="row < C.shape[0] and col < C.shape[1]", K="A.shape[1]", head=""):
    return f"""{head}

@cuda.jit
def {function}({parameters}):
    col, row = cuda.grid(2)
    if {guard}:
        total = np.float32(0)
        for k in range({K}):
            total += {product}
        {store}
"""


def for_each_scalar(count, statements):
    """Return the statements once for each of `count` scalars, whose number they have as `#`."""
    return "".join(statements.replace("#", str(number)) for number in range(count))


ATOMIC_A, ATOMIC_B = "cuda.atomic.add(A, (row, k), np.float32(0))", "cuda.atomic.add(B, (k, col), np.float32(0))"
