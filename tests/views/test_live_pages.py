"""Views with a kernel behind them, which a script in the page plays: in headless Chromium."""

import json

import numpy as np
import pytest

import labkit
from labkit.gemm.fp32 import s03_tiled
from labkit.views import memory, playground, predict, tiling

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(120)]

KERNEL = """
window.watched = 0;
window.ResizeObserver = class extends ResizeObserver {
  observe(node) { window.watched++; super.observe(node); }
  disconnect() { window.watched--; super.disconnect(); }
};
let runs = 0;
const mounted = [], data = JSON.parse(document.getElementById('labkit-data').textContent);
const kernel = message => {
  runs++;
  const answer = {...data, positions: message.positions, serial: message.serial};
  setTimeout(() => mounted.forEach(one => one.show(answer)), 5);
};
for (let i = 0; i < COUNT; i++) {
  const host = document.body.appendChild(document.createElement('div'));
  mounted.push(labkitMount(host, view, SEND));
}
mounted.forEach(one => one.show(data));
window.runs = () => runs;
window.outer = [];
document.addEventListener('keydown', event => window.outer.push(event.key));
window.mounted = mounted;
window.mount = host => labkitMount(host, view, SEND);
"""


@pytest.fixture
def live(browser, tmp_path):
    """Opens a page with so many live copies of a view, whose messages go to `send` in JavaScript."""
    contexts = []

    def open_page(view, count=1, send="kernel", **options):
        script = KERNEL.replace("COUNT", str(count)).replace("SEND", send)
        html = view.to_html().replace(f'labkitPage("{view.id}");', script)
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(offline=True, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.goto((tmp_path / "page.html").as_uri())
        page.wait_for_selector(".labkit-view[data-revision]")
        return page

    yield open_page
    for context in contexts:
        context.close()


def product():
    A = np.ones((16, 16), np.float32)
    return labkit.simulate(s03_tiled.tiled, (1, 1), (16, 16), A, A, A * 0)


@pytest.fixture(scope="module")
def played():
    def setup(TILE):
        A = np.ones((16, 16), np.float32)
        return (16 // TILE, 16 // TILE), (TILE, TILE), A, A, np.zeros_like(A)

    return playground(s03_tiled.tiled, setup, TILE=[4, 8, 16])


def test_two_views_of_one_playground_agree_after_one_run(live, played):
    page = live(played, count=2)
    sliders = page.get_by_label("TILE", exact=True)
    sliders.nth(1).focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(400)
    assert page.evaluate("runs()") == 1
    assert [sliders.nth(i).input_value() for i in range(2)] == ["1", "1"]


def test_a_quick_hand_ends_at_its_last_position(live, played):
    page = live(played)
    page.get_by_label("TILE", exact=True).focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_timeout(400)
    assert page.get_by_label("TILE", exact=True).input_value() == "1"
    assert page.evaluate("runs()") <= 3


def test_an_edited_kernel_waits_for_a_guess(live, played):
    page = live(played)
    said = page.get_by_text('Guess what that does to the picture, then press "run again".')
    assert said.count() == 0
    page.evaluate("data => mounted[0].show({...data, stale: true})", played.page_data())
    assert said.is_visible() and page.locator(".stale canvas").count() > 0
    page.get_by_role("button", name="run again").click()
    page.wait_for_timeout(400)
    assert said.count() == 0 and page.locator(".stale").count() == 0


def test_a_kernel_that_is_gone_is_said(live, played):
    dead = "() => { throw new Error('Cannot send'); }"
    page = live(played, send=dead)
    page.get_by_label("TILE", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    assert page.get_by_text("The kernel is gone: run this cell again.").is_visible()
    page = live(predict("How many?"), send=dead)
    page.get_by_label("Your guess").fill("4")
    page.get_by_role("button", name="Keep my guess").click()
    assert page.get_by_text("The kernel is gone: run this cell again.").is_visible()
    assert page.get_by_text("Kept").count() == 0


@pytest.mark.parametrize("control", ["step of", "step forward", "The data as a table"])
def test_letters_stay_in_a_view_and_commands_do_not(live, control):
    page = live(tiling(product()))
    page.locator("summary" if "data" in control else f"[aria-label^='{control}']").first.focus()
    for key in ("x", "a", "m", "d", "Escape", "Control+s"):
        page.keyboard.press(key)
    assert page.evaluate("outer") == ["Escape", "Control", "s"]


def test_focus_stays_on_a_button_at_the_last_step(live):
    page = live(tiling(product()))
    button = page.get_by_label("step forward")
    button.focus()
    last = int(page.locator("input[type=range]").get_attribute("max"))
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.locator(".labkit-view").get_attribute("data-step") == str(last)
    assert page.evaluate("document.activeElement.ariaLabel") == "step forward"
    assert button.get_attribute("aria-disabled") == "true"


def test_a_view_whose_style_comes_later_is_painted_then(live):
    page = live(memory(product()))
    page.evaluate(
        "window.styles = [...document.querySelectorAll('style')]; styles.forEach(style => style.disabled = true);"
        "window.outside = document.createElement('div'); document.body.replaceChildren(outside); mount(outside)"
        ".show(JSON.parse(STORED))".replace("STORED", json.dumps(json.dumps(memory(product()).data)))
    )
    page.evaluate("styles.forEach(style => style.disabled = false)")
    pixels = "document.querySelector('canvas').getContext('2d').getImageData(0, 0, 600, 80).data"
    page.wait_for_function(f"new Set({pixels}.filter((_, i) => i % 4 < 3)).size > 20")


def test_a_view_that_goes_watches_nothing_any_more(live, played):
    page = live(played)
    assert page.evaluate("watched") > 0
    page.evaluate("mounted[0].stop()")
    assert page.evaluate("watched") == 0


def test_labels_are_read_without_marks_and_pictures_with_their_sentence(live):
    page = live(tiling(product()))
    labels = json.dumps(page.evaluate("[...document.querySelectorAll('[aria-label]')].map(node => node.ariaLabel)"))
    assert "`" not in labels and "**" not in labels
    described = "c => document.getElementById(c.getAttribute('aria-describedby')).textContent"
    said = page.evaluate(f"[...document.querySelectorAll('canvas')].map({described})")
    assert said and set(said) == {page.locator(".say").first.inner_text()}


@pytest.mark.parametrize("width", [320, 390])
def test_a_playground_fits_a_narrow_screen(live, played, width):
    page = live(played, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
