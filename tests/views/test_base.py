"""Every view: one sentence, a page that needs nothing, a live widget, a still picture."""

import json
import re

import numpy as np
import pytest

from labkit.views.base import COLOURS, View, pack, pack_lanes, read_static, strip_marks, table, unpack


@pytest.fixture
def view():
    def still(figure, data, step):
        figure.add_subplot().set_title(f"{data['say'][step]}")

    data = {"say": ["**half** of `a`", "</script><b>two"], "table": table(["n"], [[1], [2]], by_step=True)}
    return View("banks", "A `view`", data, still)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1, -1], [127, -128]]),
        np.array([128, 3]),
        np.array([[70000]]),
        np.zeros((0, 3), int),
        np.array([0.5, -2.25]),
        np.array([True, False]),
    ],
)
def test_packed_arrays_come_back(array):
    packed = json.loads(json.dumps(pack(array)))
    np.testing.assert_array_equal(unpack(packed), array)


def test_small_numbers_travel_in_few_bytes():
    assert [pack(np.array([n]))["dtype"] for n in (127, 128, 40000)] == ["int8", "int16", "int32"]


def test_lanes_come_back_and_share_their_patterns():
    row = np.arange(32)
    index = np.stack([row, row + 64, np.full(32, -1), np.where(row % 2, row * 4, -1)])
    packed = json.loads(json.dumps(pack_lanes(index)))
    np.testing.assert_array_equal(unpack(packed), index)
    assert packed["patterns"]["shape"][0] == 3


def test_text_is_the_first_sentence_without_marks(view):
    assert repr(view) == view.sentence == "half of a"
    view.data["start"] = 1
    assert view.sentence == "</script><b>two"
    assert strip_marks("`A[i]` is **all**") == "A[i] is all"


def test_page_is_whole_and_fetches_nothing(view):
    page = view.to_html()
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert "import(" not in page and "fetch(" not in page
    assert page.count("</script>") == 2, "data must not end its script element"


def test_display_gives_a_page_and_a_widget(view, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw: shown.append(bundle))
    view._ipython_display_()
    page, widget = shown
    assert page["text/plain"] == "half of a"
    assert f'data-labkit="{view.id}"' in page["text/html"] and "srcdoc=" in page["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in widget
    assert " at 0x" not in page["text/plain"] + widget["text/plain"]
    assert view.widget.view_id == view.id


def test_update_reaches_the_live_widget_once(view):
    changes = []
    view.widget.observe(changes.append, "data")
    view.update({"say": "new"})
    assert [change["new"]["say"] for change in changes] == ["new"]
    assert "new" in view.to_html()


def test_still_pictures_are_saved(view, tmp_path):
    view.save_png(tmp_path / "a.png")
    view.save_png(tmp_path / "a.svg")
    view.save_html(tmp_path / "a.html")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == view.to_html()


@pytest.mark.parametrize("step", [-1, 3, 999])
def test_a_still_picture_of_a_step_that_is_not_there_is_refused(tmp_path, step):
    view = View("memory", "Three steps", {"say": ["a", "b", "c"]}, lambda figure, data, step: None)
    with pytest.raises(ValueError, match=f"`Three steps` has the steps 0 to 2, and no {step}"):
        view.save_png(tmp_path / "view.png", step=step)


def themes():
    """The variables of base.css in the light and the dark theme."""
    rules = [dict(re.findall(r"--([\w-]+):(#\w+)", line)) for line in read_static("base.css").splitlines()[:2]]
    return {"light": rules[0], "dark": {**rules[0], **rules[1]}}


def linear(colour):
    """Red, green and blue of #rrggbb without the gamma of sRGB."""
    sRGB = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(sRGB <= 0.04045, sRGB / 12.92, ((sRGB + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """WCAG's contrast ratio of two colours."""
    luminance = sorted(0.05 + linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (one, other))
    return luminance[1] / luminance[0]


def painted(colour, under, share):
    """What a colour of that opacity gives on another one, as #rrggbb."""
    mixed = [
        round(share * int(a, 16) + (1 - share) * int(b, 16)) for a, b in zip(pairs(colour), pairs(under), strict=True)
    ]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def pairs(colour):
    return [colour[i : i + 2] for i in (1, 3, 5)]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_now_differs_in_luminance_from_orange_which_some_eyes_see_as_the_same_hue(theme):
    colours = themes()[theme]
    assert contrast(colours["hot"], colours["B"]) > 2
    assert contrast(colours["hot"], colours["card"]) > 4.5 and contrast(colours["hot-text"], colours["card"]) > 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_states_of_a_cell_differ_in_luminance(theme):
    colours = themes()[theme]
    least = float(re.findall(r"const STRENGTH = \[([\d.]+)", read_static("tiling.js"))[0])
    assert contrast(colours["cell"], colours["card"]) > 1.2
    for role in "ABC":
        assert contrast(painted(colours[role], colours["cell"], least), colours["cell"]) > 1.2


def test_still_pictures_have_the_colours_of_the_light_theme():
    light = themes()["light"]
    assert {name: colour.lower() for name, colour in COLOURS.items()} == {name: light[name].lower() for name in COLOURS}


@pytest.mark.needs("chromium")
def test_a_closed_fold_of_a_notebook_keeps_its_distance_from_the_next_paragraph(browser):
    page = browser.new_page()
    fold = "<details><summary>Answers</summary>One.</details><p style='margin:0 0 1em'>Next.</p>"
    page.set_content(f"<style>{read_static('base.css')}</style><div class='jp-RenderedMarkdown'>{fold}</div>")
    fold, after = page.locator("details").bounding_box(), page.locator("p").bounding_box()
    page.close()
    assert after["y"] - (fold["y"] + fold["height"]) >= 12
