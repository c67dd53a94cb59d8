"""Other answers to exercise 16.4."""

from . import Variant

RESCALED = "total = total * exp(most - larger) + exp(logit - larger)"
CAUGHT = "            if first + j == target:\n                of_target = logit\n"
STORED = "loss[row] = most - of_target + log(total) if target >= 0 else np.float32(0)"
LOADED = "            if first + n // WIDTH < words:\n                W_tile"
TILE_END = "range(min(WORDS, words - first))"
BARRIER = "        cuda.syncthreads()\n"

VARIANTS = (
    Variant("not rescaled", "result", ((RESCALED, "total += exp(logit - larger)"),)),
    Variant("rescaled after the maximum moved", "result", ((RESCALED, f"most = larger\n            {RESCALED}"),)),
    Variant("no maximum", "result", (("larger = max(most, logit)", "larger = np.float32(0)"),)),
    Variant(
        "the first logit for a maximum",
        "result",
        (("larger = max(most, logit)", "larger = logit if first + j == 0 else most"),),
    ),
    Variant(
        "a first maximum of zero",
        "result",
        (("np.float32(-3e38), np.float32(0), np", "np.float32(0), np.float32(0), np"),),
    ),
    Variant("the target's logit rescaled as well", "result", ((CAUGHT, CAUGHT.replace("= logit", "= logit - most")),)),
    Variant("the target within its tile", "result", ((CAUGHT, CAUGHT.replace("first + j ==", "j ==")),)),
    Variant("the target's weight", "result", ((CAUGHT, CAUGHT.replace("= logit", "= exp(logit - most)")),)),
    Variant("padding that counts", "result", ((STORED, "loss[row] = most - of_target + log(total)"),)),
    Variant(
        "padding left alone",
        "unwritten",
        (("    if row < rows:\n        loss", "    if row < rows and target >= 0:\n        loss"),),
    ),
    Variant("the first word is padding", "result", ((STORED, STORED.replace("target >= 0", "target > 0")),)),
    Variant(
        "a likelihood",
        "result",
        ((STORED, STORED.replace("most - of_target + log(total)", "of_target - most - log(total)")),),
    ),
    Variant("without the maximum", "result", ((STORED, STORED.replace("most - of_target + ", "")),)),
    Variant(
        "words beyond the last",
        "result",
        (
            (TILE_END, "range(WORDS)"),
            (
                LOADED,
                LOADED.replace(
                    "            if first + n // WIDTH < words:\n    ",
                    "            W_tile[n // WIDTH, n % WIDTH] = 0\n            if first + n // WIDTH < words:\n    ",
                ),
            ),
        ),
    ),
    Variant("what the last tile left", "result", ((TILE_END, "range(WORDS if first > 0 else min(WORDS, words))"),)),
    Variant("loaded beyond the last word", "bounds", ((LOADED, LOADED.replace("< words", "< words + 1")),)),
    Variant(
        "threads without a place do not wait",
        "barrier",
        (
            (
                "    for first in range(0, words, WORDS):",
                "    for first in range(0, words if row < rows else 0, WORDS):",
            ),
        ),
    ),
    Variant("no barrier before the next tile", "race", ((BARRIER + "        for n", "        for n"),)),
    Variant("no barrier behind the loads", "race", ((BARRIER + "        for j", "        for j"),)),
    Variant(
        "the target's row loaded again",
        "budget",
        (
            (CAUGHT, ""),
            (
                "    if row < rows:\n        loss",
                """    if row < rows:
        for d in range(WIDTH):
            of_target += x[d] * W[max(target, 0), d]
        loss""",
            ),
        ),
    ),
    Variant("each thread for itself", "budget", (("logit += x[d] * W_tile[j, d]", "logit += x[d] * W[first + j, d]"),)),
    Variant(
        "X loaded for each word",
        "budget",
        (("logit += x[d] * W_tile[j, d]", "logit += (X[d, row] if row < rows else np.float32(0)) * W_tile[j, d]"),),
    ),
    Variant("in float64", "budget", (("np.float32(-3e38), np.float32(0), np", "np.float32(-3e38), 0.0, np"),)),
    Variant("a larger tile", "solved", (("32, 8, 8", "32, 32, 8"),)),
    Variant("a smaller tile", "solved", (("32, 8, 8", "32, 5, 8"),)),
    Variant(
        "the logarithm first",
        "solved",
        ((STORED, STORED.replace("most - of_target + log(total)", "(most + log(total)) - of_target")),),
    ),
    Variant("a first maximum of minus infinity", "solved", (("np.float32(-3e38)", "np.float32(-np.inf)"),)),
)
