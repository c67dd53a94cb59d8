"""Views that share a page: they are read from a notebook's outputs, and a guess is compared as Python compares it."""

from importlib import import_module
from io import StringIO

import pytest

from labkit.views import predict
from labkit.views.base import View
from labkit.views.shared_page import mount_point, read_frame, write_scripts

module = import_module("labkit.views.predict")
NUMBERS = [(64, 4096), (4096, 64), (5.2, 5.4), (1024, 1000), (10, 10), (0, 10), (3, 1), (0.5, 0.125), (2500000, 1.5e6)]
CHOICES = "faster", "slower"


@pytest.fixture(autouse=True)
def no_guesses(monkeypatch):
    monkeypatch.setattr(module, "_guesses", {})


def shown(view):
    """The HTML that a notebook stores of a view."""
    bundles = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("IPython.display.display", lambda bundle, **_: bundles.append(bundle))
        view._ipython_display_()
    return bundles[0]["text/html"]


def page_of(folder, *views):
    """A page with these views, in a folder with the scripts; its address."""
    write_scripts(folder)
    text = StringIO()
    text.write('<!doctype html><html lang="en"><head><title>page</title><link rel="stylesheet" href="views.css">')
    text.write('<script src="views.js" defer></script></head><body>')
    text.write("".join(mount_point(*read_frame(shown(view))) for view in views))
    (folder / "page.html").write_text(text.getvalue() + "</body></html>", encoding="utf-8")
    return (folder / "page.html").as_uri()


def test_a_view_is_read_from_what_a_notebook_stores():
    view = View("predict", "A <title> & `code`", {"say": "</script> **bold**", "guess": None}, None)
    assert read_frame(shown(view)) == ("predict", view.data)
    assert read_frame("<table></table>") is None
    assert "</script> " not in mount_point("predict", view.data)


@pytest.mark.needs("chromium")
def test_a_guess_in_a_page_is_compared_as_in_a_notebook(browser, tmp_path, monkeypatch):
    asked = [(f"How many, {i}?", guess, actual) for i, (guess, actual) in enumerate(NUMBERS)]
    questions = [predict(text, unit="loads") for text, _, _ in asked]
    views = [*questions, *(each.compare(actual) for each, (_, _, actual) in zip(questions, asked, strict=True))]
    page = browser.new_page()
    page.goto(page_of(tmp_path, *views))
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    for i, (text, guess, actual) in enumerate(asked):
        monkeypatch.setitem(module._guesses, text, guess)
        expected = predict(text, unit="loads").compare(actual)
        answer = page.locator(".labkit-host[data-view=compare]").nth(i)
        assert "Keep a guess above" in answer.inner_text()
        question = page.locator(".labkit-host[data-view=predict]").nth(i)
        question.locator("input").fill(str(guess))
        question.locator("button").click()
        assert answer.locator(".say").inner_text() == expected.sentence
        assert answer.locator("canvas").count() == bool(expected.data["marks"])
    page.close()


@pytest.mark.needs("chromium")
def test_a_choice_in_a_page_is_compared_as_in_a_notebook(browser, tmp_path, monkeypatch):
    questions = [predict(text, choices=CHOICES) for text in ("Which?", "And then?")]
    page = browser.new_page()
    page.goto(page_of(tmp_path, *questions, *(each.compare("slower") for each in questions)))
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    for i, (question, guess) in enumerate(zip(questions, CHOICES, strict=True)):
        monkeypatch.setitem(module._guesses, question.question, guess)
        form = page.locator(".labkit-host[data-view=predict]").nth(i)
        form.get_by_label(guess).check()
        form.locator("button").click()
        answer = page.locator(".labkit-host[data-view=compare]").nth(i)
        assert answer.locator(".say").inner_text() == question.compare("slower").sentence
    page.close()
