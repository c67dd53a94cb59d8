"""Other answers to exercise 17.3."""

from . import Variant

THERE = "if of_part > np.float32(-np.inf):"
FACTORS = "shrunk, weight = exp(most - larger), exp(of_part - larger)"
TOTAL = "total = total * shrunk + weight"
SUM = "o = o * shrunk + weight * O_parts[part, row, d]"
MOVED = "                most = larger\n"
STORED = "O[row, d] = o / total if found else np.float32(0)"
LSE = "lse[row] = most + log(total) if found else np.float32(-np.inf)"

VARIANTS = (
    Variant("the mean", "result", ((FACTORS, "shrunk, weight = np.float32(1), np.float32(1)"),)),
    Variant("log-sum-exps as weights", "result", ((FACTORS, "shrunk, weight = np.float32(1), of_part"),)),
    Variant("no maximum", "result", (("larger = max(most, of_part)", "larger = np.float32(0)"),)),
    Variant("the sum not moved", "result", ((SUM, "o = o + weight * O_parts[part, row, d]"),)),
    Variant("the total not moved", "result", ((TOTAL, "total = total + weight"),)),
    Variant("the part not moved", "result", ((FACTORS, "shrunk, weight = exp(most - larger), np.float32(1)"),)),
    Variant(
        "moved the wrong way round",
        "result",
        ((FACTORS, "shrunk, weight = exp(larger - most), exp(of_part - larger)"),),
    ),
    Variant("the maximum not kept", "result", ((MOVED, ""),)),
    Variant("relative to the last part", "result", (("larger = max(most, of_part)", "larger = of_part"),)),
    Variant("empty parts are like others", "result", ((THERE, "if True:"),)),
    Variant(
        "empty parts weigh 0",
        "result",
        ((THERE, "if True:"), ("np.float32(-np.inf), np.float32(0), np", "np.float32(-3e38), np.float32(0), np")),
    ),
    Variant(
        "a first maximum of zero",
        "result",
        (("np.float32(-np.inf), np.float32(0), np", "np.float32(0), np.float32(0), np"),),
    ),
    Variant("not divided", "result", ((STORED, "O[row, d] = o"),)),
    Variant("divided by what is nothing", "result", ((STORED, "O[row, d] = o / total"),)),
    Variant("divided by the number of parts", "result", ((STORED, "O[row, d] = o / np.float32(lse_parts.shape[0])"),)),
    Variant("the maximum for a log-sum-exp", "result", ((LSE, "lse[row] = most"),)),
    Variant("a sum for a log-sum-exp", "result", ((LSE, "lse[row] = total if found else np.float32(-np.inf)"),)),
    Variant("without the maximum", "result", ((LSE, "lse[row] = log(total) if found else np.float32(-np.inf)"),)),
    Variant(
        "a log-sum-exp of 0 where there is nothing",
        "result",
        ((LSE, LSE.replace("np.float32(-np.inf)", "np.float32(0)")),),
    ),
    Variant(
        "nothing stored where there is nothing",
        "unwritten",
        (("        O[row, d]", "        if found:\n            O[row, d]"),),
    ),
    Variant(
        "until the first empty part",
        "result",
        (
            (SUM, SUM),
            (
                "            if of_part >",
                "            if of_part == np.float32(-np.inf):\n                break\n            if of_part >",
            ),
        ),
    ),
    Variant(
        "parts of small log-sum-exp taken for empty ones",
        "result",
        (("            if of_part > np.float32(-np.inf)", "            if of_part > np.float32(-2000)"),),
    ),
    Variant("no guard", "bounds", (("if row < lse.size:", "if True:"),)),
    Variant(
        "a log-sum-exp by each thread",
        "budget",
        (("        if d == 0:\n            lse", "        if True:\n            lse"),),
    ),
    Variant("loaded twice", "budget", ((FACTORS, FACTORS.replace("exp(of_part", "exp(lse_parts[part, row]")),)),
    Variant(
        "the sum in float64",
        "budget",
        (("np.float32(-np.inf), np.float32(0), np.float32(0)", "np.float32(-np.inf), np.float32(0), 0.0"),),
    ),
    Variant(
        "a first maximum below all",
        "solved",
        (("np.float32(-np.inf), np.float32(0), np", "np.float32(-3e38), np.float32(0), np"),),
    ),
    Variant("-inf by itself", "solved", ((LSE, "lse[row] = most + log(total)"),)),
)
