"""Other answers to exercise 17.2."""

from . import Variant

SEEN = "if key <= top + i + keys - queries:"
WEIGHT = "weight = exp(score - lse_tile[i])"
SLOPE = "slope = weight * (slope - delta_tile[i])"
OF_VALUE = "dv[d] += weight * dO_tile[i, d]"
OF_KEY = "dk[d] += slope * Q_tile[i, d]"
BARRIER = "        cuda.syncthreads()\n"

VARIANTS = (
    Variant("no log-sum-exp", "result", ((WEIGHT, "weight = exp(score)"),)),
    Variant("log-sum-exp the wrong way round", "result", ((WEIGHT, "weight = exp(lse_tile[i] - score)"),)),
    Variant("a quotient of exponentials", "result", ((WEIGHT, "weight = exp(score) / exp(lse_tile[i])"),)),
    Variant("a product of exponentials", "result", ((WEIGHT, "weight = exp(score) * exp(-lse_tile[i])"),)),
    Variant("no delta", "result", ((SLOPE, "slope = weight * slope"),)),
    Variant("delta not weighed", "result", ((SLOPE, "slope = weight * slope - delta_tile[i]"),)),
    Variant("delta added", "result", ((SLOPE, SLOPE.replace(" - ", " + ")),)),
    Variant("the gradient of weights", "result", ((SLOPE, "slope = slope - delta_tile[i]"),)),
    Variant("dS for P", "result", ((OF_VALUE, OF_VALUE.replace("weight", "slope")),)),
    Variant("P for dS", "result", ((OF_KEY, OF_KEY.replace("slope", "weight")),)),
    Variant("Q for dO", "result", ((OF_VALUE, OF_VALUE.replace("dO_tile", "Q_tile")),)),
    Variant("the sum of O * V", "result", (("slope += dO_tile[i, d] * v[d]", "slope += dO_tile[i, d] * k[d]"),)),
    Variant("no mask", "result", ((SEEN, "if True:"),)),
    Variant("a mask from the first key on", "result", ((SEEN, "if key <= top + i:"),)),
    Variant("one key too few", "result", ((SEEN, SEEN.replace("<=", "<")),)),
    Variant("one key too many", "result", ((SEEN, SEEN.replace("- queries:", "- queries + 1:")),)),
    Variant(
        "weights that are multiplied by 0",
        "result",
        ((SEEN, "if True:"), (WEIGHT, f"{WEIGHT} * np.float32(1 if key <= top + i + keys - queries else 0)")),
    ),
    Variant(
        "queries without keys by their log-sum-exp alone", "result", ((SEEN, "if lse_tile[i] > np.float32(-np.inf):"),)
    ),
    Variant("stored for each query", "result", ((OF_VALUE, OF_VALUE.replace("+=", "=")),)),
    Variant("no barrier before the next tile", "race", ((BARRIER + "        for n", "        for n"),)),
    Variant(
        "no barrier behind the loads", "race", ((BARRIER + "        for i in range(min", "        for i in range(min"),)
    ),
    Variant("its queries from memory", "budget", ((OF_KEY, OF_KEY.replace("Q_tile[i, d]", "Q[top + i, d]")),)),
    Variant("its log-sum-exp from memory", "budget", ((WEIGHT, WEIGHT.replace("lse_tile[i]", "lse[top + i]")),)),
    Variant("in float64", "budget", (("score = slope = np.float32(0)", "score = slope = 0.0"),)),
    Variant(
        "a weight of 0 where nothing is seen",
        "solved",
        ((SEEN, "if True:"), (WEIGHT, f"{WEIGHT} if key <= top + i + keys - queries else np.float32(0)")),
    ),
    Variant(
        "values first, then keys",
        "solved",
        ((OF_VALUE + "\n", OF_VALUE + "\n                for d in range(HEAD):\n"),),
    ),
)
