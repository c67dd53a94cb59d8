"""Exercise 06.3: a ring of asynchronous copies whose tiles are used before they have come."""

from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import half_launch, whole

SIZES = ((32, 16, 80), (16, 32, 16))  # M, N, K, rounded up to multiples of 16


def launch(rng, M, N, K):
    return half_launch(rng, whole(M, 16), whole(N, 16), whole(K, 16), part=(16, 16), block=(32, 2))


WAIT = "            ptx.cp_async_wait(AHEAD)\n"
COMMIT = "        ptx.cp_async_commit()\n"
LAST = "            cuda.syncthreads()\n    col ="

EXERCISE = Exercise(
    id="06.3",
    title="Put the wait back",
    task="The warps multiply tiles that are still on their way. Add what is missing.",
    points=2,
    function="copied_ahead",
    launch=launch,
    sizes=SIZES,
    drawn=((range(16, 33, 16), range(32, 49, 16), range(96, 145, 16)),),
    variants=(
        Variant("the bug itself", "in-flight", ((WAIT, ""),)),
        Variant("one group too many left under way", "in-flight", ((WAIT, WAIT.replace("AHEAD", "STAGES")),)),
        Variant(
            "the wait after the barrier",
            "race",
            ((WAIT + "            cuda.syncthreads()\n", "            cuda.syncthreads()\n" + WAIT),),
        ),
        Variant("no groups", "in-flight", ((COMMIT, ""),)),
        Variant("groups of the first steps alone", "in-flight", ((COMMIT, "        if step < steps:\n    " + COMMIT),)),
        Variant("no barrier after the wait", "race", ((WAIT + "            cuda.syncthreads()\n", WAIT),)),
        Variant("no barrier after the product", "race", ((LAST, "    col ="),)),
        Variant("the wrong stage", "in-flight", (("(step - AHEAD) % STAGES", "step % STAGES"),)),
        Variant("a step too few", "result", (("range(AHEAD + steps)", "range(AHEAD + steps - 1)"),)),
        Variant("waiting for everything", "solved", ((WAIT, WAIT.replace("AHEAD", "0")),)),
        Variant("waiting for one group more", "solved", ((WAIT, WAIT.replace("AHEAD", "1")),)),
    ),
)
