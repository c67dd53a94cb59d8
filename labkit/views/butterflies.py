"""The network of a small fast Fourier transform: wires of the bit reversal, and butterflies with their values."""

from math import pi

import numpy as np
from jaxtyping import Complex

from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack

MOST_POINTS = 16


def butterflies(passes: Complex[np.ndarray, "passes_1 T"]) -> View:
    """Step through the butterflies of a transform by halves, as a kernel computed them.

    Parameters
    ----------
    passes
        The line as it was in memory: in order, after the bit reversal, and after each pass. For T points these are
        log2(T) + 2 rows.
    """
    passes = np.asarray(passes, np.complex128)
    T = passes.shape[-1]
    bits = T.bit_length() - 1
    if passes.ndim != 2 or not 2 <= T <= MOST_POINTS or 2**bits != T or len(passes) != bits + 2:
        raise ValueError(f"butterflies takes log2(T) + 2 rows of T points, with T = 2, 4, 8 or {MOST_POINTS}.")
    places = [int(f"{k:0{bits}b}"[::-1], 2) for k in range(T)]
    steps = [(0, -1, -1, 0, 0), (1, -1, -1, 0, 0)]  # column up to which values are known, both places, root, its count
    for index in range(bits):
        half = 2**index
        for n in range(T // 2):
            a = n // half * 2 * half + n % half
            steps.append((index + 2, a, a + half, n % half, 2 * half))
    says = [_sentence(*step, passes, places) for step in steps]
    done = [max(0, number - 1) for number in range(len(steps))]
    data = {
        "say": says,
        "steps": pack(np.array(steps)),
        "places": places,
        "re": pack(np.real(passes)),
        "im": pack(np.imag(passes)),
        **stats_by_step(
            ["pass"],
            [[max(0, column - 1)] for column, *_ in steps],
            ["butterflies so far", "products as defined, T x T"],
            [[count, T * T] for count in done],
        ),
    }
    return View("butterflies", f"A fast Fourier transform of {T} points, butterfly by butterfly", data, draw_still)


def number(value) -> str:
    """Write a complex number with two digits after the point, without parts that are 0."""
    re, im = (0.0 if abs(part) < 5e-3 else float(part) for part in (value.real, value.imag))
    if not im:
        return f"{re:.2f}"
    if not re:
        return f"{im:.2f}i"
    return f"{re:.2f} {'-' if im < 0 else '+'} {abs(im):.2f}i"


def _sentence(column, a, b, power, count, passes, places):
    T = len(places)
    bits = T.bit_length() - 1
    if column == 0:
        return f"{T} points in order. A wire goes from each to the place with its bits **read backwards**."
    if column == 1:
        k = T - 2 if bits > 1 else 1
        return (
            f"Bit reversal: point {k}, binary {k:0{bits}b}, went to place {places[k]:0{bits}b}. Neighbours were half a "
            "line apart; no value has changed."
        )
    root = np.exp(-2j * pi * power / count)
    before, after = passes[column - 1], passes[column]
    turned = f", turned clockwise by {360 * power // count} degrees," if power else ""
    return (
        f"Pass {column - 1}: place {b}{turned} is {number(before[b] * root)}. Its **sum** with place {a}, "
        f"{number(before[a])}, is {number(after[a])}; the **difference** is {number(after[b])}."
    )


def draw_still(figure, data, step):
    """Draw the network with the values that are known, and the butterfly of this step."""
    steps, places = unpack(data["steps"]), data["places"]
    values = unpack(data["re"]) + 1j * unpack(data["im"])
    T, columns = values.shape[1], len(values)
    stills.set_size_and_title(figure, data, step, 9.5, 1 + 0.42 * T)
    axes = figure.subplots()
    column, a, b = steps[step, :3]
    done = {(int(c), int(place)) for c, first, second, *_ in steps[2 : step + 1] for place in (first, second)}
    for k in range(T):
        axes.plot([0.25, 0.75], [k, places[k]], color=COLOURS["A"], lw=1, alpha=0.3 if column == 0 else 0.9)
        for c in range(columns):
            if c == 0 or (c == 1 and column >= 1) or (c, k) in done:
                is_now = c == column and k in (a, b)
                colour = COLOURS["hot" if is_now else "fg"]
                stills.write(axes, c, k, number(values[c, k]), fontsize=7, color=colour)
    for c, first, second, *_ in steps[2:]:
        is_now = (c, first) == (column, a)
        for one in (first, second):
            for other in (first, second):
                axes.plot(
                    [c - 0.7, c - 0.3],
                    [one, other],
                    color=COLOURS["hot" if is_now else "line"],
                    lw=2 if is_now else 0.7,
                )
    axes.set_ylim(T - 0.5, -0.8)
    axes.set_xlim(-0.5, columns - 0.5)
    stills.hide_marks(axes, labelbottom=False, labelleft=False)
