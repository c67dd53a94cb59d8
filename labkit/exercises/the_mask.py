"""A softmax in which no place looks at a later one."""

import numpy as np

from labkit.checking import NO_FLOAT64, Beyond, Budget, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, MIN_NORMAL, matrix
from labkit.ladder import Expected

WARP = 32
SIZES = ((40, 40), (9, 75), (37, 20), (1, 1))  # queries, keys
FAR = 1e4
NOTHING = 0.3  # of the logits are minus infinity


def make_launch(rng, queries, keys):
    S = (5 * matrix(rng, queries, keys) + rng.uniform(-FAR, FAR, (queries, 1))).astype(np.float32)
    rows, columns = np.arange(queries)[:, None], np.arange(keys)
    count = np.clip(rows + keys - queries + 1, 0, None)  # of a row that are allowed
    sure = (rng.random((queries, 1)) * count).astype(int)  # is finite
    S[(rng.random(S.shape) < NOTHING) & (columns != sure)] = -np.inf
    allowed = columns < count
    S[~allowed] = np.where(rng.random(S.shape) < 0.5, np.inf, 2 * FAR)[~allowed]
    seen = np.where(allowed, S.astype(float), -np.inf)
    maximum = np.where(count > 0, seen.max(1, keepdims=True), 0)
    shares = np.exp(seen - maximum)
    P = shares / np.maximum(shares.sum(1, keepdims=True), MIN_NORMAL)
    apart = np.where(P > 0, maximum - np.where(P > 0, seen, maximum), 0)
    off = EPS * (4 * keys / WARP + 32 + 4 * apart + 4 * (P * apart).sum(1, keepdims=True)) * P
    many = int(allowed.sum())
    last = int(count[-1, 0])  # of the last row, whose block is the last
    return Launch(
        label=f"S {queries} x {keys}, a warp a row",
        args=(S, unwritten_array(S.shape)),
        outputs={1: Expected(P, off + MIN_NORMAL * (P > 0))},
        grid=(queries,),
        block=(WARP,),
        budgets=(
            Budget("global loads", 2 * many, "each logit that is allowed twice, and no other"),
            Budget("global stores", queries * keys, "each element of P once"),
            Budget("load requests", 2 * int((-(-count // WARP)).sum()), "2 for 32 neighbours, which a warp loads"),
            Budget(LOCAL_NUMBERS, 8, "8: a row may have any length"),
            Budget(SHARED_BYTES, 1024, "1 KB: a row may have any length"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, min(last, WARP) // 2, "a warp for each row"),),
    )


EXERCISE = Exercise(
    id="the-mask",
    title="The mask",
    task="A language model must not look ahead: the last query may look at all keys, the one before at all but the "
    "last key, and so on. Write P, the softmax of what a row may look at, and 0 in all other places; a row that may "
    "look at nothing is 0. Load no logit that is not allowed, and the others at most twice. Some of these are minus "
    "infinity, but never all of a row.",
    points=3,
    function="causal",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=((range(5, 20, 3), range(33, 90, 2)), (Beyond(40), (1, 2, 31, 64)), ((1, 3), Beyond(75))),
)
