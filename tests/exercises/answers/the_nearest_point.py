"""Other answers to the-nearest-point."""

from . import Answer, right, shortcut, wrong

_LOADS = """        inside = start + t < N
        tile[0, t] = Q[0, start + t] if inside else far
        tile[1, t] = Q[1, start + t] if inside else far
"""
_BEST = """            dx, dy = tile[0, j] - x, tile[1, j] - y
            best = min(best, dx * dx + dy * dy)
"""
_LAST_BARRIER = "        cuda.syncthreads()\n    if i < M:\n"
_ZEROS = (
    ("Q[0, start + t] if inside else far", "Q[0, start + t] if inside else np.float32(0)"),
    ("Q[1, start + t] if inside else far", "Q[1, start + t] if inside else np.float32(0)"),
)
_BY_SHUFFLES = """    for start in range(0, N, 32):
        lane = t % 32
        qx = qy = far
        if start + lane < N:
            qx, qy = Q[0, start + lane], Q[1, start + lane]
        for j in range(32):
            dx, dy = cuda.shfl_sync(0xFFFFFFFF, qx, j) - x, cuda.shfl_sync(0xFFFFFFFF, qy, j) - y
            best = min(best, dx * dx + dy * dy)
    if i < M:
        out[i] = best
"""
_UNFILLED = """        if start + t < N:
            tile[0, t] = Q[0, start + t]
            tile[1, t] = Q[1, start + t]
"""
_FOR_P = """        if i < M:
            tile[0, t] = Q[0, start + t] if start + t < N else far
            tile[1, t] = Q[1, start + t] if start + t < N else far
"""
_BY_IF = """            dx, dy = tile[0, j] - x, tile[1, j] - y
            d = dx * dx + dy * dy
            if d < best:
                best = d
"""


def _instead(loop):
    """Edits that put another loop over Q, and all after it, in place of the solution's."""
    rest = _LOADS + "        cuda.syncthreads()\n        for j in range(TILE):\n" + _BEST
    return (
        ("    for start in range(0, N, TILE):\n" + rest + _LAST_BARRIER + "        out[i] = best", loop.rstrip("\n")),
    )


VARIANTS = (
    Answer("zeros in the ragged tile", "result", _ZEROS, mistake="the origin were a point of Q"),
    Answer("zeros for one coordinate", "solved", _ZEROS[:1]),  # the other one is still far away
    Answer(
        "the ragged tile left out",
        "result",
        (("range(0, N, TILE)", "range(0, N // TILE * TILE, TILE)"),),
        mistake="the points after the last whole tile were left out",
    ),
    Answer(
        "the ragged tile not filled",
        "uninitialised",
        (
            (
                _LOADS,
                _UNFILLED,
            ),
        ),
    ),
    Answer("past the end of Q", "bounds", (("inside = start + t < N", "inside = start < N"),)),
    Answer(
        "threads without a point return",
        "uninitialised",
        (("    if i < M:\n        x, y", "    if i >= M:\n        return\n    if i < M:\n        x, y"),),
    ),
    Answer(
        "Q's guard asks for P's point",
        "uninitialised",
        (
            (
                _LOADS,
                _FOR_P,
            ),
        ),
    ),
    Answer("no first barrier", "race", (("        cuda.syncthreads()\n        for j", "        for j"),)),
    Answer("no second barrier", "race", ((_LAST_BARRIER, "    if i < M:\n"),)),
    Answer("a barrier for each point", "budget", ((_BEST, _BEST + "            cuda.syncthreads()\n"),)),
    Answer(
        "the minimum begins at zero",
        "result",
        (("    best = far\n", "    best = np.float32(0)\n"),),
        mistake="the smallest distance began at 0",
    ),
    Answer(
        "the farthest point",
        "result",
        (("    best = far\n", "    best = np.float32(0)\n"), ("best = min(", "best = max("), *_ZEROS),
    ),
    Answer(
        "the last point, not the nearest",
        "result",
        (("best = min(best, dx * dx + dy * dy)", "best = dx * dx + dy * dy"),),
        mistake="only the last point were looked at",
    ),
    Answer(
        "along the streets",
        "result",
        (("dx * dx + dy * dy", "abs(dx) + abs(dy)"),),
        mistake="the distance were along the axes",
    ),
    Answer("one coordinate", "result", (("dx * dx + dy * dy", "dx * dx + dx * dx"),)),
    Answer(
        "every thread loads Q",
        "budget",
        _instead("""    for j in range(N):
        dx, dy = Q[0, j] - x, Q[1, j] - y
        best = min(best, dx * dx + dy * dy)
    if i < M:
        out[i] = best
"""),
    ),
    Answer("a store without a guard", "bounds", (("    if i < M:\n        out[i]", "    if i >= 0:\n        out[i]"),)),
    Answer("a loop that ends with the points", "solved", (("range(TILE):", "range(min(TILE, N - start)):"), *_ZEROS)),
    Answer(
        "the last point again and again",
        "solved",
        (
            (
                _LOADS,
                "        tile[0, t] = Q[0, min(start + t, N - 1)]\n        tile[1, t] = Q[1, min(start + t, N - 1)]\n",
            ),
        ),
    ),
    Answer(
        "minus infinity", "result", (("best = far", "best = -far"),), mistake="the smallest distance began at -infinity"
    ),
    Answer("a root", "result", (("out[i] = best", "out[i] = best ** np.float32(0.5)"),), mistake="the root were taken"),
    Answer(
        "no start",
        "result",
        (("Q[0, start + t]", "Q[0, t]"), ("Q[1, start + t]", "Q[1, t]")),
        mistake="every tile held the first points of Q",
    ),
    Answer(
        "i for t in Q",
        "result",
        (
            ("Q[0, start + t]", "Q[0, start + i]"),
            ("Q[1, start + t]", "Q[1, start + i]"),
            ("start + t < N", "start + i < N"),
        ),
        mistake="each block began at the point of Q with its own number",
    ),
    Answer(
        "t for i in P",
        "result",
        (("P[0, i], P[1, i]", "P[0, t], P[1, t]"),),
        mistake="each block took the first points of P",
    ),
)

RIGHT = (
    right("a number that is far enough", ("np.float32(np.inf)", "np.float32(1e19)")),
    right(
        "an if for the minimum",
        (
            _BEST,
            _BY_IF,
        ),
    ),
    right(
        "places without a point are passed over",
        (_BEST, "            if start + j < N:\n" + "".join("    " + line + "\n" for line in _BEST.splitlines())),
        *_ZEROS,
    ),
    right(
        "ifs for the loads",
        (
            _LOADS,
            """        if start + t < N:
            tile[0, t] = Q[0, start + t]
            tile[1, t] = Q[1, start + t]
        else:
            tile[0, t] = tile[1, t] = far
""",
        ),
    ),
)

WRONG = (
    wrong(
        "a difference is compared with a square",
        (
            "            best = min(best, dx * dx + dy * dy)",
            "            if abs(dx) < best:\n                best = min(best, dx * dx + dy * dy)",
        ),
    ),
    wrong(
        "zeros, and the places past the end of the last tile but one",
        *_ZEROS,
        ("range(TILE):", "range(TILE if start + TILE < N else max(N - start, 63)):"),
    ),
    wrong("the points of Q that are published", ("range(0, N, TILE)", "range(0, min(N, 192), TILE)")),
    wrong("two blocks", ("i, t = cuda.grid(1)", "i, t = cuda.grid(1) % 192")),
    wrong("far, but not far enough", ("np.float32(np.inf)", "np.float32(99)")),
    wrong("an even number of points", ("inside = start + t < N", "inside = start + t < max(N // 2 * 2, 1)")),
    wrong("no distance beyond a thousand million", ("    best = far", "    best = np.float32(1e9)")),
    wrong(
        "far from the points near the origin",
        ("Q[0, start + t] if inside else far", "Q[0, start + t] if inside else np.float32(1e4)"),
        ("Q[1, start + t] if inside else far", "Q[1, start + t] if inside else np.float32(1e4)"),
    ),
    wrong("no distance beyond a million million", ("    best = far", "    best = np.float32(1e12)")),
    wrong("a thousand million is far enough", ("np.float32(np.inf)", "np.float32(1e9)")),
    wrong(
        "squares that lose the digits of a difference",
        (
            _BEST,
            """            if start + j < N:
                u, v = tile[0, j], tile[1, j]
                best = min(best, x * x + y * y + u * u + v * v - np.float32(2) * (x * u + y * v))
""",
        ),
    ),
    wrong("a minimum that begins at a million million million", ("    best = far", "    best = np.float32(1e18)")),
    wrong(
        "twice the greatest coordinate is far enough",
        ("    far = np.float32(np.inf)\n    best = far", "    far = np.float32(2e9)\n    best = np.float32(np.inf)"),
    ),
)

SHORTCUTS = (
    shortcut("points by shuffles", *_instead(_BY_SHUFFLES)),
    shortcut(
        "tiles of 128 points",
        ("TILE = 64\n", "TILE = 64\nTWICE = 2 * TILE\n"),
        ("shared.array((2, TILE)", "shared.array((2, TWICE)"),
        ("range(0, N, TILE)", "range(0, N, TWICE)"),
        (
            _LOADS,
            """        for n in range(t, TWICE, TILE):
            tile[0, n] = Q[0, start + n] if start + n < N else far
            tile[1, n] = Q[1, start + n] if start + n < N else far
""",
        ),
        ("for j in range(TILE)", "for j in range(TWICE)"),
    ),
)
