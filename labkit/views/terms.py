"""Products of sums, written out: the pairs of a pixel and a tap that each holds, and how they make an output."""

from fractions import Fraction

import numpy as np
from jaxtyping import Float

from labkit.views import stills
from labkit.views.base import View, pack, table, unpack


def terms(products: Float[np.ndarray, "places pixels taps"], signs: Float[np.ndarray, "outputs places"]) -> View:
    """Step through the outputs of a tile, which are sums of products: term by term most of it cancels.

    Parameters
    ----------
    products
        How often each product holds each pair of a pixel and a tap, as a run with this pair alone gives it.
    signs
        How often each output takes each product.
    """
    products, signs = np.asarray(products, float), np.asarray(signs, float)
    if products.ndim != 3 or signs.ndim != 2 or signs.shape[1] != len(products):
        raise ValueError(
            "terms takes products by place, pixel and tap, and for each output how often it takes each product; the "
            f"shapes are {products.shape} and {signs.shape}."
        )
    steps, says, sums = [], [], []
    for output, coefficients in enumerate(signs):
        places = np.flatnonzero(coefficients)
        for number, place in enumerate(places):
            total = np.tensordot(coefficients[places[: number + 1]], products[places[: number + 1]], 1)
            total = np.where(np.isclose(total, np.round(total)), np.round(total), total)  # a third three times is 1
            steps.append([output, place])
            sums.append(total)
            says.append(_sentence(output, place, coefficients[place], total, number == 0))
    rows = [
        [f"y[{output}]", f"M[{place}]", _written(signs[output, place] * products[place]), _written(total)]
        for (output, place), total in zip(steps, sums, strict=True)
    ]
    data = {
        "say": says,
        "steps": pack(np.array(steps)),
        "products": pack(products),
        "signs": pack(signs),
        "sums": pack(np.array(sums)),
        "table": table(["output", "product", "its terms", "all terms so far"], rows, by_step=True),
    }
    return View("terms", "Terms: what the products hold, written out", data, draw_still)


def _sentence(output, place, times, total, first):
    """Say which product is added, and which terms of the sum are wanted."""
    sign = "begins with" if first and times > 0 else "takes" if times > 0 else "takes away"
    factor_text = "" if abs(times) == 1 else f"{_number(abs(times))} times "
    pixels, taps = np.indices(total.shape)
    wanted = pixels - taps == output
    num_right = int((total[wanted] == 1).sum())
    num_unwanted = int((total[~wanted] != 0).sum())
    unwanted = f"and {num_unwanted} other{'s'[: num_unwanted > 1]}"
    rest = unwanted if num_unwanted else "**and nothing else**"
    return f"`y[{output}]` {sign} {factor_text}**M[{place}]**: it has {num_right} of its {wanted.sum()} terms {rest}."


def _written(coefficients):
    """Return the terms of a sum as text."""
    found = [
        f"{_sign(value)} {_number(abs(value)) + ' ' if abs(value) != 1 else ''}d{pixel} g{tap}"
        for (pixel, tap), value in np.ndenumerate(coefficients)
        if value
    ]
    return " ".join(found).removeprefix("+ ")


def _sign(value):
    return "-" if value < 0 else "+"


def _number(value):
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "infinity"
    return str(Fraction(float(value)).limit_denominator(1000))


def draw_still(figure, data, step):
    """Draw the products and the sum at a step."""
    stills.set_size_and_title(figure, data, step, 9.5, 2.8)
    products, (output, place) = unpack(data["products"]), unpack(data["steps"])[step]
    panels = {f"M[{i}]": product for i, product in enumerate(products)} | {f"y[{output}]": unpack(data["sums"])[step]}
    for axes, (title, cells) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        stills.show_cells(axes, _coloured(cells), lines=1)
        weight = "bold" if title in (f"M[{place}]", f"y[{output}]") else None
        axes.set_title(title, fontsize=9, loc="left", weight=weight)
        for (pixel, tap), value in np.ndenumerate(cells):
            if value:
                text = f"{_sign(value)}{_number(abs(value))}" if np.isfinite(value) else _number(value)
                stills.write(axes, tap, pixel, text, fontsize=7)
        axes.set_xticks(range(cells.shape[1]), [f"g{tap}" for tap in range(cells.shape[1])], fontsize=7)
        axes.set_yticks(range(cells.shape[0]), [f"d{pixel}" for pixel in range(cells.shape[0])], fontsize=7)
        axes.tick_params(labelbottom=True, labelleft=True)


def _coloured(cells):
    tints = np.array([stills.tint(name, 0.55) for name in ("cell", "A", "B", "hot")])
    return tints[np.select([~np.isfinite(cells), cells > 0, cells < 0], [3, 1, 2], 0)]
