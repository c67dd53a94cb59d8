"""Causal softmax that loads only the allowed logits."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, MIN_NORMAL, random_matrix
from labkit.ladder import Expected

WARP = 32
MAX_LOGIT = 1e4
MAX_SUM = float(np.finfo(np.float32).max)
MASKED_SHARE = 0.3  # of the logits that are minus infinity


def make_launch(rng, queries, keys):
    S = (5 * random_matrix(rng, queries, keys) + rng.uniform(-MAX_LOGIT, MAX_LOGIT, (queries, 1))).astype(np.float32)
    spread = rng.random((queries, 1)) < 0.3  # rows that hold logits of all sizes
    S = np.where(spread, rng.uniform(-MAX_LOGIT, MAX_LOGIT, S.shape), S).astype(np.float32)
    S[queries // 2] = rng.uniform(-MAX_LOGIT, 1 - MAX_LOGIT, keys)  # least logits: minus infinity still is far below
    rows, columns = np.arange(queries)[:, None], np.arange(keys)
    count = np.clip(rows + keys - queries + 1, 0, None)  # allowed logits per row
    finite_column = (rng.random((queries, 1)) * count).astype(int)  # one logit per row stays finite
    S[(rng.random(S.shape) < MASKED_SHARE) & (columns != finite_column)] = -np.inf
    if keys > 2 * WARP:  # relative to a lane's first logit, the exponentials of a row add up to infinity
        S[-1] = np.where(columns < WARP, 0, np.log(1.2 * MAX_SUM / (keys - WARP)))
    allowed = columns < count
    S[~allowed] = np.where(rng.random(S.shape) < 0.5, np.inf, 2 * MAX_LOGIT)[~allowed]
    logits = np.where(allowed, S.astype(float), -np.inf)
    row_max = np.where(count > 0, logits.max(1, keepdims=True), 0)
    exps = np.exp(logits - row_max)
    P = exps / np.maximum(exps.sum(1, keepdims=True), MIN_NORMAL)
    distances = np.where(P > 0, row_max - np.where(P > 0, logits, row_max), 0)
    # 32 roundings of an exponential and the division; a logit's eps times its distance from row_max, twice
    bound = EPS * (4 * keys / WARP + 32 + 4 * distances + 4 * (P * distances).sum(1, keepdims=True)) * P
    num_allowed = int(allowed.sum())
    last_count = int(count[-1, 0])  # the last row is the last block's
    return Launch(
        label=f"S {queries} x {keys}, one warp per row",
        args=(S, unwritten_array(S.shape)),
        outputs={1: Expected(P, bound + MIN_NORMAL * (P > 0))},
        grid=(queries,),
        block=(WARP,),
        budgets=(
            Budget("global loads", 2 * num_allowed, "each logit that is allowed twice, and no other"),
            Budget("global stores", queries * keys, "each element of P once"),
            Budget("load requests", 2 * int((-(-count // WARP)).sum()), "2 for 32 neighbours, which a warp loads"),
            Budget(LOCAL_NUMBERS, 8, "8: a row may have any length"),
            Budget(SHARED_BYTES, 1024, "1 KB: a row may have any length"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, min(last_count, WARP) // 2, "one warp per row"),),  # a lane may take 2 keys
        mistakes=(
            Mistake(
                "there were no division",
                lambda: {1: Expected(exps, 4 * EPS * (8 + distances) * exps + MIN_NORMAL)},
                "Divide what you store by the sum over all lanes.",
            ),
            Mistake(
                "masked elements were not stored",
                lambda: {1: Expected(np.where(allowed, P, np.nan), bound + MIN_NORMAL)},
                "Store a 0 for each key that the row does not see: let the last loop run over all keys.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="The mask",
    task="A language model must not look ahead: the last query may look at all keys, the query before it at all keys "
    "except the last, and so on. Write P: the softmax of the keys that a row may look at, and 0 for all other keys. A "
    "row that may look at no key is 0. Load no logit that is not allowed, and the others at most twice. Some of these "
    "are minus infinity, but never all of a row.",
    points=3,
    function="causal",
    make_launch=make_launch,
    sizes=((40, 40), (9, 75), (37, 20), (1, 1)),  # queries, keys
    random_sizes=((range(5, 20, 3), range(33, 90, 2)), (Above(40), (1, 2, 31, 64)), ((1, 3), Above(75))),
)
