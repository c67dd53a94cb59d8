"""The distance to the nearest of many points, whose ragged tile must not be filled with zeros."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Dependence, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS, SHARED_BYTES
from labkit.exercises.problems import EPS, grid_for, one_thread_per_element
from labkit.ladder import Expected
from labkit.simulator.disturbance import SHARED_LOADS
from labkit.table import count_text

TILE = 64
BEGIN = "Begin with a number above all distances, such as infinity."
OF_TILE = "A thread loads the point `start + t` of Q, where `t` is its number in the block."
NEAREST, FARTHEST = 30, 99  # coordinates of Q, so that a ghost at the origin is nearer to some of P
FAR_OFF = (1e9, -1e9, 6e8, -6e8, 1e8, -1e8, 1e7, -1e7, 1e6, -1e6, 1e5, -1e5)  # coordinates of P


def make_launch(rng, M, N, unit=1, *away):
    """Make points with coordinates that are whole multiples of a unit, a power of two."""
    Q = (rng.integers(NEAREST, FARTHEST + 1, (2, N)) * rng.choice((-1, 1), (2, N))).astype(np.float32)
    if away:
        Q += np.array(away, np.float32)[:, None]
    P = rng.integers(-FARTHEST, FARTHEST + 1, (2, M)).astype(np.float32)
    close = rng.random(M) < 0.5
    P[:, close] = Q[:, rng.integers(N, size=close.sum())] + rng.integers(-2, 3, (2, close.sum()))
    if away:  # whatever fills a place without a point may be near to one of these
        P[:, : M // 2] = np.resize(FAR_OFF, M // 2)
    P[:, rng.integers(M)] = Q[:, N - 1]  # a last point that is left out shows
    P, Q = P * np.float32(unit), Q * np.float32(unit)
    blocks, tiles = -(-M // TILE), -(-N // TILE)

    def expected(points, power=2):
        """Whole numbers, and few digits, unless Q is far away: exact in float32."""
        powers = (abs(P[:, :, None].astype(float) - points[:, None]) ** power).sum(0).min(1, initial=np.inf)
        return Expected(powers, 4 * EPS * np.where(np.isfinite(powers), powers, 0) * bool(away))

    is_whole = N % TILE == 0
    whole, last = Q[:, : N // TILE * TILE], Q[:, N - 1 :]
    with_origin = np.append(Q, np.zeros((2, int(not is_whole))), 1)

    def take_root():
        right = expected(Q)
        return {
            2: Expected(np.sqrt(right.value), 4 * EPS * np.sqrt(np.where(np.isfinite(right.value), right.value, 0)))
        }

    def leave_out_earlier():
        """Leave out the points of Q before each block's first thread."""
        values = [expected(Q[:, start:]) for start in range(0, M, TILE)]
        parts = [slice(start, start + TILE) for start in range(0, M, TILE)]
        value, bound = (
            np.concatenate([getattr(each, field)[part] for each, part in zip(values, parts, strict=True)])
            for field in ("value", "bound")
        )
        return {2: Expected(value, bound)}

    def take_first_points():
        right, first = expected(Q), np.arange(M) % TILE
        return {2: Expected(right.value[first], right.bound[first])}

    return Launch(
        label=f"{count_text(M, 'point')}, the nearest of {N}"
        + (f", in steps of {unit}" if unit != 1 else "")
        + (f" around {away}" if away else ""),
        args=(P, Q, unwritten_array((M,))),
        outputs={2: expected(Q)},
        grid=grid_for((M,), (TILE,)),
        block=(TILE,),
        budgets=(
            Budget(
                "global loads",
                2 * M + 2 * blocks * tiles * TILE,
                "each point of P once, and each of Q once per block",
                {"P": 2 * M, "Q": 2 * blocks * tiles * TILE},
                "Let the loop go on by a whole tile, and read the points of Q from the tile.",
            ),
            Budget(BARRIERS, 2 * blocks * tiles, "two per tile of each block, before it is used and after"),
            Budget(SHARED_BYTES, 2 * TILE * 4, "TILE points of two coordinates"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((M,), (TILE,)),),
        dependences=(
            Dependence(
                SHARED_LOADS,
                "take the points of Q from the tile in shared memory",
                lambda disturbed: [expected(disturbed.disturb(SHARED_LOADS, Q))],
            ),
        )
        * (not away),  # a disturbed point may be farther away than any that is allowed
        mistakes=(
            Mistake(
                "the origin were a point of Q",
                lambda: {2: expected(with_origin)},
                "Fill places of the tile that have no point with infinity, or end the loop over it at the last point.",
            ),
            Mistake(
                "the points after the last whole tile were left out",
                lambda: {2: expected(whole)},
                "Let the loop over tiles go on to N, so that its last tile may be ragged.",
            ),
            Mistake(
                "only the last point were looked at",
                lambda: {2: expected(last if is_whole else last + np.inf)},
                "Keep the smaller of the distance so far and the new one, by `min`.",
            ),
            Mistake(
                "the distance were along the axes",
                lambda: {2: expected(Q, power=1)},
                "Square both differences, and add the squares.",
            ),
            Mistake("the smallest distance began at 0", lambda: {2: Expected(np.zeros(M), np.zeros(M))}, BEGIN),
            Mistake(
                "the smallest distance began at -infinity",
                lambda: {2: Expected(np.full(M, -np.inf), np.zeros(M))},
                BEGIN,
            ),
            Mistake("the root were taken", take_root, "The distance is squared: store it without a root."),
            Mistake("every tile held the first points of Q", lambda: {2: expected(Q[:, :TILE])}, OF_TILE),
            Mistake("each block began at the point of Q with its own number", leave_out_earlier, OF_TILE),
            Mistake(
                "each block took the first points of P",
                take_first_points,
                "Load the point with the thread's number in the grid: `t` is its number in the block.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="The nearest point",
    task="For each point of P, write the squared distance to the nearest point of Q. "
    "Let each block take Q through shared memory, tile by tile.",
    points=4,
    function="nearest",
    make_launch=make_launch,
    sizes=((128, 192), (150, 100)),  # M, N; the second is ragged
    random_sizes=(
        (range(65, 127), range(65, 127)),
        ((1, 2), Above(192)),
        (Above(150), (1, 3)),
        # what is far away for other points is near here; squares lose digits
        ((70, 90), (65, 67), (1,), (30_000,), (-30_000,)),
        (
            (70, 90),
            (65, 67),
            (1,),
            (-999_999_000,),
            (-999_999_000,),
        ),  # some points of P are at the other end of the range
        ((70, 90), (63, 65), (2**-7,)),  # a square is less than its root
    ),
)
