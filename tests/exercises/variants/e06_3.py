"""Other answers to exercise 06.3."""

from . import Variant

WAIT = "            ptx.cp_async_wait(AHEAD)\n"

COMMIT = "        ptx.cp_async_commit()\n"

LAST = "            cuda.syncthreads()\n    col ="

VARIANTS = (
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
)
