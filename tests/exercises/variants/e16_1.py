"""Other answers to exercise 16.1."""

from . import Variant

FACTOR = "shrunk = exp(origin - highest)"
TOTAL = "            total *= shrunk\n"
SUMS = "            for d in range(HEAD):\n                o[d] *= shrunk\n"
MOVED = "            origin = highest\n"
LATE = "if highest > origin + np.float32(8):"

VARIANTS = (
    Variant("the stub", "result", ((FACTOR, "shrunk = exp(most - highest)"), (SUMS, ""))),
    Variant("the sums rescaled as the total is", "result", ((FACTOR, "shrunk = exp(most - highest)"),)),
    Variant("the sums not rescaled", "result", ((SUMS, ""),)),
    Variant("the total not rescaled", "result", ((TOTAL, ""),)),
    Variant("half of the sums", "result", ((SUMS, SUMS.replace("range(HEAD)", "range(HEAD // 2)")),)),
    Variant("the other way round", "result", ((FACTOR, "shrunk = exp(highest - origin)"),)),
    Variant("moved first", "result", ((MOVED, ""), (FACTOR, f"origin = highest\n            {FACTOR}"))),
    Variant("never moved again", "result", ((LATE, "if left == 0:"),)),
    Variant("moved at once", "result", ((LATE, "if highest > origin:"),)),
    Variant("moved at 8 as well", "result", ((LATE, LATE.replace(">", ">=")),)),
    Variant("relative to the maximum", "result", (("origins[row] = total, origin", "origins[row] = total, most"),)),
    Variant(
        "to the maximum in the end",
        "result",
        (
            (
                "    if row < queries:\n",
                """    shrunk = exp(origin - most)
    total *= shrunk
    for d in range(HEAD):
        o[d] *= shrunk
    origin = most
    if row < queries:
""",
            ),
        ),
    ),
    Variant("divided", "result", (("sums[d, row] = o[d]", "sums[d, row] = o[d] / total"),)),
    Variant("rescaled twice", "result", ((TOTAL, TOTAL * 2),)),
    Variant(
        "in the loop over keys", "result", ((SUMS, ""), ("o[d] += weight", "o[d] = o[d] * exp(most - origin) + weight"))
    ),
    Variant("weights in float64", "budget", (("total = np.float32(0)", "total = 0.0"),)),
    Variant("no barrier before a tile", "race", (("        cuda.syncthreads()\n        for n", "        for n"),)),
    Variant("the sums first", "solved", ((TOTAL + SUMS, SUMS + TOTAL),)),
    Variant(
        "without the maximum so far",
        "solved",
        (
            ("most = origin = ", "origin = "),
            ("highest = most\n", "highest = origin\n"),
            ("        most = highest\n", ""),
        ),
    ),
)
