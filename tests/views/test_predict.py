"""A guess is kept back, compared after the run, and never missed by nbval."""

from importlib import import_module

import numpy as np
import pytest

from labkit.views import predict

module = import_module("labkit.views.predict")  # the package's own name for it is the function


@pytest.fixture(autouse=True)
def no_guesses(monkeypatch):
    monkeypatch.setattr(module, "_guesses", {})


def guessed(guess, **options):
    question = predict("How many loads?", **options)
    question.handle_message({"guess": guess})
    return question


def test_unanswered_it_says_what_was_measured():
    question = predict("How many loads?", unit="loads")
    assert repr(question) == "How many loads?"
    assert repr(question.compare(4096)) == (
        "It is 4,096 loads. You made no guess this time: make one before you run it again."
    )
    assert question.compare(4096).data["marks"] == []


@pytest.mark.parametrize(
    ("guess", "actual", "words"),
    [
        (64, 4096, "64 times too low"),
        (4096, 64, "64 times too high"),
        (5.2, 5.4, "as good as right"),
        (1024, 1000, "You said 1,024, and it is 1,000 loads: close, and 24 too high."),
        (10, 10, "exactly right"),
        (0, 10, "You said 0, and it is 10 loads."),
    ],
)
def test_a_number_is_compared_by_its_factor(guess, actual, words):
    assert words in repr(guessed(guess, unit="loads").compare(actual))


def test_one_of_a_unit_is_singular():
    assert repr(predict("How often?", unit="times").compare(1.0)).startswith("It is 1 time.")
    assert repr(guessed(1, unit="sectors").compare(1)) == "You said 1, and that is exactly right: 1 sector."
    assert repr(predict("How many?", unit="passes").compare(1)).startswith("It is 1 pass.")
    assert repr(predict("How much faster?", unit="x").compare(5.56)).startswith("It is 5.56x. ")
    assert "it is 1 ms:" in repr(guessed(2, unit="ms").compare(1))


def test_the_scale_is_left_out_where_a_logarithm_has_no_place():
    assert guessed(0).compare(10).data["marks"] == []
    assert [mark[0] for mark in guessed(5).compare(10).data["marks"]] == [5, 10]


def test_choices_are_compared_as_words():
    choices = ("faster", "slower")
    assert repr(predict("Which?", choices=choices).compare("slower")).startswith("It is slower.")
    assert repr(guessed("slower", choices=choices).compare("slower")) == "You said slower, and that is right."
    assert repr(guessed("faster", choices=choices).compare("slower")) == "You said faster, and it is slower."
    with pytest.raises(ValueError, match="'same' is not one of the choices"):
        predict("Which?", choices=choices).compare("same")


def test_an_answer_of_a_model_is_not_called_measured():
    view = guessed(7).compare(9, "modelled")
    assert view.title.startswith("Predicted and modelled: ")
    assert view.data["table"]["rows"][1][0] == "modelled"


def test_a_guess_outlives_running_the_cell_again():
    guessed(7)
    assert predict("How many loads?").guess == 7
    assert predict("Another question?").guess is None


def test_the_live_widget_hands_over_the_guess():
    question = predict("How many loads?")
    question.widget._handle_custom_msg({"guess": 12}, [])
    assert question.guess == 12


def test_still_pictures_are_drawn(tmp_path):
    for view in (predict("How many?"), guessed(3).compare(10), guessed(0).compare(10)):
        view.save_png(tmp_path / "view.png")
        assert (tmp_path / "view.png").stat().st_size > 1000


@pytest.mark.parametrize("actual", [float("nan"), float("inf"), "abc", None, [3]])
@pytest.mark.parametrize("guess", [None, 3])
def test_what_is_no_number_is_not_compared(guess, actual):
    question = predict("How many loads?") if guess is None else guessed(guess)
    with pytest.raises(ValueError, match="compare takes the number that was measured, not"):
        question.compare(actual)


def test_numbers_of_numpy_are_compared():
    assert "10 times too low" in repr(guessed(3).compare(np.float32(30)))
    assert "10 times too low" in repr(guessed(3).compare(np.int64(30)))


def test_a_guess_of_another_kind_under_the_same_question_does_not_count():
    guessed("slower", choices=("faster", "slower"))
    assert predict("How many loads?").guess is None
    assert "You made no guess" in repr(predict("How many loads?").compare(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Which?", ["one", "two"]), "unit is a text, not a list: give possible answers as choices="),
        ((3,), "question is a text"),
        (("Which?", "", "ab"), "choices are a list of texts, not 'ab'"),
        (("Which?", "", [1, 2]), "choices are a list of texts"),
    ],
)
def test_arguments_in_the_wrong_place_are_told(arguments, message):
    with pytest.raises(TypeError, match=message):
        predict(*arguments)
