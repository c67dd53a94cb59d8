"""Views that share a page: they are read from a notebook's outputs, and a guess is compared as Python compares it."""

import json
from importlib import import_module
from io import StringIO

import numpy as np
import pytest

from labkit.views import number_line, predict, verdicts
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


def test_a_still_picture_waits_for_readers_without_javascript():
    text = mount_point("number_line", {"title": "`a` & b", "say": "It says."}, "stills/one.png")
    assert '<noscript><img src="stills/one.png" alt="still picture: a &amp; b"></noscript>' in text


@pytest.mark.needs("chromium")
def test_much_data_is_packed_and_arrives_whole(browser, tmp_path):
    much = View("number_line", "</script> ü", {"say": "</script>", "values": [f"{i} of ü" for i in range(9999)]}, None)
    page = browser.new_page()
    page.add_init_script("IntersectionObserver = class { observe() {} unobserve() {} }")  # no view is drawn
    page.goto(page_of(tmp_path, much, predict("How many?")))
    assert (tmp_path / "page.html").stat().st_size < len(json.dumps(much.data)) / 2
    page.wait_for_function("!document.querySelector('[data-packed]')")
    texts = page.locator(".labkit-host > script").all_text_contents()
    assert json.loads(texts[0]) == much.data
    assert json.loads(texts[1])["title"] == "Predict"
    page.close()


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


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("guess", [0.0004, 0.125, 1234567.5])
def test_a_kept_guess_is_shown_as_it_was_given(browser, tmp_path, guess):
    page = browser.new_page()
    page.goto(page_of(tmp_path, predict("How many?", unit="loads")))
    question = page.locator(".labkit-host[data-view=predict]")
    question.locator("input").fill(str(guess))
    question.locator("button").click()
    assert f"Kept: {guess:,} loads." in question.inner_text()
    page.close()


@pytest.mark.needs("chromium")
def test_showing_an_answer_by_keys_keeps_the_focus_at_it(browser, tmp_path):
    page = browser.new_page()
    question = predict("How many?")
    page.goto(page_of(tmp_path, question, question.compare(7)))
    page.get_by_role("button", name="Show the answer").press("Enter")
    focused = page.locator(".labkit-view:focus")
    assert "It is 7" in focused.inner_text(timeout=2000)
    page.close()


@pytest.mark.needs("chromium")
def test_a_dark_page_is_printed_light_and_dark_again_after_that(browser, tmp_path):
    page = browser.new_page(color_scheme="dark")
    page.goto(page_of(tmp_path, number_line({"halves": np.arange(1, 9) / 2})))
    page.locator("canvas").first.wait_for()
    colours = """() => {
        const view = document.querySelector('.labkit-view'), canvas = view.querySelector('canvas');
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const inks = new Set();
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) inks.add(data.slice(i, i + 3).join());
        return [getComputedStyle(view).backgroundColor, [...inks].sort().join(' ')];
    }"""
    dark = page.evaluate(colours)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    printed = page.evaluate(colours)
    assert printed[0] == "rgb(255, 255, 255)"
    assert printed[1] != dark[1]
    swatch = "getComputedStyle(document.querySelector('.labkit-view i')).printColorAdjust"  # of a legend: a background
    assert page.evaluate(swatch) == "exact"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(colours) == dark
    page.close()


@pytest.mark.needs("chromium")
def test_a_view_that_cannot_be_drawn_leaves_its_sentence_and_the_other_views(browser, tmp_path):
    page = browser.new_page()
    broken = View("number_line", "A broken one", {"say": "What it says."}, None)
    page.goto(page_of(tmp_path, broken, predict("How many?")))
    page.get_by_role("button", name="Keep my guess").wait_for(timeout=5000)
    first = page.locator(".labkit-host").first
    assert first.locator(".labkit-view").count() == 0
    assert "What it says." in first.inner_text()
    page.close()


@pytest.mark.needs("chromium")
def test_charts_of_a_page_share_no_ids(browser, tmp_path):
    page = browser.new_page()
    counts = {"Products": {"confirmed": 2, "open": 1}}
    page.goto(page_of(tmp_path, verdicts(counts, title="One"), verdicts(counts, title="Two")))
    page.locator("svg").nth(1).wait_for()
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(ids) == len(set(ids))
    used = page.evaluate("document.querySelectorAll('[clip-path]').length")
    lost = """() => [...document.querySelectorAll('[clip-path]')].filter(
        element => !document.getElementById(element.getAttribute('clip-path').slice(5, -1)))"""
    assert used
    assert page.evaluate(lost) == []
    page.close()
