"""A question before the run, a guess that is kept back, and the comparison after it."""

from collections.abc import Sequence
from math import isfinite
from numbers import Real

from labkit.table import short_number
from labkit.views.base import COLOURS, View, table
from labkit.views.wording import type_name

# Guesses of this session by their question, so that running the cell again does not lose them.
_guesses: dict[str, float | str] = {}


class Prediction(View):
    """A question; `compare(actual)` answers it."""

    def __init__(self, question, unit, choices):
        self.question = question
        self.unit = unit
        self.choices = tuple(choices)
        data = {"say": question, "unit": unit, "choices": list(self.choices), "guess": self.guess}
        super().__init__("predict", "Predict", data, _draw_still_question)

    @property
    def guess(self) -> float | str | None:
        """The learner's guess, or None."""
        said = _guesses.get(self.question)
        return said if self._is_answer(said) else None

    def handle_message(self, message):
        _guesses[self.question] = message["guess"]

    def compare(self, actual: float | str, found: str = "measured") -> View:
        """Show the guess against what was measured; without a guess, say what was measured.

        `found` says how the answer was found, if it was not measured: "modelled" or "computed".
        """
        if not self._is_answer(actual):
            if self.choices:
                raise ValueError(f"{actual!r} is not one of the choices: {', '.join(map(repr, self.choices))}")
            raise ValueError(f"compare takes the number that was measured, not {actual!r}: give a finite number.")
        say = _choice(self.guess, actual) if self.choices else _number(self.guess, actual, self.unit)
        guess, measured = _shown(self.guess), _shown(actual)
        marks = [[self.guess, f"your guess: {guess}"], [actual, f"it is {measured}"]]
        is_scale = not self.choices and self.guess is not None and min(self.guess, actual) > 0
        data = {
            "say": say,
            "marks": marks if is_scale else [],
            "answer": {"question": self.question, "value": actual, "shown": _with_unit(actual, self.unit)},
            "unit": self.unit,
            "table": table(("", self.unit or "answer"), (("your guess", guess), (found, measured))),
        }
        return View("compare", f"Predicted and {found}: {self.question}", data, _draw_still_scale)

    def _is_answer(self, value):
        if self.choices:
            return value in self.choices
        return isinstance(value, Real) and isfinite(value)


def predict(question: str, unit: str = "", choices: Sequence[str] = ()) -> Prediction:
    """Ask before the run: a number (with its unit; "x" for a factor), or one of the choices.

    Raises
    ------
    TypeError
        The question or the unit is no text, or the choices are no list of texts.
    """
    for name, text in {"question": question, "unit": unit}.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} is a text, not {type_name(text)}: give possible answers as choices=[...].")
    if isinstance(choices, str) or not all(isinstance(choice, str) for choice in choices):
        raise TypeError(f"choices are a list of texts, not {choices!r}.")
    return Prediction(question, unit, choices)


def _number(guess, actual, unit):
    answer = f"**{_with_unit(actual, unit)}**"
    if guess is None:
        return f"It is {answer}. You made no guess this time: make one before you run it again."
    sentence = f"You said {_shown(guess)}, and it is {answer}"
    if guess == actual:
        return f"You said {_shown(guess)}, and that is exactly right: {answer}."
    if min(guess, actual) <= 0:
        return f"{sentence}."
    ratio = max(guess, actual) / min(guess, actual)
    if ratio <= 1.1:
        counts = all(value == int(value) for value in (guess, actual))
        off = f"{_shown(abs(guess - actual))} too {'low' if guess < actual else 'high'}"
        return f"{sentence}: close, and {off}." if counts else f"{sentence}: as good as right."
    return f"{sentence}: your guess was {_shown(ratio)} times too {'low' if guess < actual else 'high'}."


def _with_unit(value, unit):
    if unit == "x":  # a factor
        return f"{_shown(value)}x"
    return f"{_shown(value)} {_singular(unit) if value == 1 else unit}".rstrip()


def _singular(unit):
    """Return the singular of a unit; ms and % have none."""
    if len(unit) <= 2 or not unit.endswith("s"):
        return unit
    return unit[: -2 if unit.endswith("sses") else -1]


def _choice(guess, actual):
    if guess is None:
        return f"It is **{actual}**. You made no guess this time: make one before you run it again."
    if guess == actual:
        return f"You said {guess}, and that is right."
    return f"You said {guess}, and it is **{actual}**."


def _shown(value):
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) else short_number(value)


def _draw_still_question(figure, data, step):
    figure.set_size_inches(8, 0.8)
    figure.text(0.01, 0.4, data["say"], color=COLOURS["fg"], size=11, wrap=True)


def _draw_still_scale(figure, data, step):
    figure.set_size_inches(8, 1.6)
    figure.suptitle(data["say"].replace("**", ""), fontsize=10)
    if not data["marks"]:
        return
    axes = figure.add_subplot()
    (guess, guess_text), (actual, actual_text) = data["marks"]
    axes.set(xscale="log", xlim=(min(guess, actual) / 5, max(guess, actual) * 5), ylim=(-1, 1), yticks=[])
    axes.plot(guess, 0, "o", ms=11, mfc="none", mec=COLOURS["A"], mew=2)
    axes.plot(actual, 0, "o", ms=8, color=COLOURS["hot"])
    axes.annotate(guess_text, (guess, 0.35), ha="center")
    axes.annotate(actual_text, (actual, -0.7), ha="center")
    axes.spines[["left", "right", "top"]].set_visible(False)
