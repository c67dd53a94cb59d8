"""The book's pages in a browser: every view lives, nothing is fetched from elsewhere, and nobody is shut out."""

import pytest

from labkit.exercises import exercise
from labkit.exercises.contents import book_contents

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(1500), pytest.mark.long]

MAX_BYTES = 3e6
TILED = f"chapters/{book_contents().chapter('tiled-gemm').name}.html"


def names(pages):
    return sorted(
        path.relative_to(pages).as_posix() for path in pages.rglob("*.html") if path.parent.name != "_modules"
    )


def test_every_page_is_whole_light_and_open_to_all(pages, open_page):
    found = {}
    for name in names(pages):
        opened = open_page()
        opened.open(name)
        heavy = [f"{opened.bytes_loaded:,} bytes"] if opened.bytes_loaded >= MAX_BYTES else []
        views, living = opened.wake()
        asleep = [f"{views - living} of {views} views do not live"] if living < views else []
        opened.page.wait_for_timeout(300)
        found[name] = [*heavy, *asleep, *opened.violations(), *opened.faults]
        opened.page.context.close()
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize("options", [{"color_scheme": "dark"}, {"viewport": {"width": 320, "height": 256}}])
def test_a_dark_and_a_narrow_page_are_open_to_all(open_page, options):
    opened = open_page(**options) if "viewport" not in options else open_page()
    page = opened.open(TILED)
    if "viewport" in options:
        page.set_viewport_size(options["viewport"])
        assert page.evaluate("document.documentElement.scrollWidth") <= options["viewport"]["width"]
    opened.wake()
    page.wait_for_timeout(300)
    assert opened.violations() == []


def test_keys_open_and_close_the_lists_of_a_narrow_page_and_pass_by_closed_ones(open_page):
    page = open_page(reduced_motion="reduce").open(TILED)
    page.set_viewport_size({"width": 320, "height": 256})
    chapters = page.locator(".sidebar-drawer a", has_text="Glossary")
    sections = page.locator(".toc-drawer a", has_text="Banks")
    assert not chapters.is_visible()
    assert not sections.is_visible()
    button = page.get_by_role("button", name="Toggle site navigation sidebar")
    button.press("Enter")
    assert chapters.is_visible()
    assert button.get_attribute("aria-expanded") == "true"
    page.locator(".sidebar-drawer a").first.focus()
    page.keyboard.press("Escape")
    assert not chapters.is_visible()
    assert button.get_attribute("aria-expanded") == "false"
    assert button.evaluate("button => button === document.activeElement")
    button = page.get_by_role("button", name="Toggle table of contents sidebar")
    button.click()
    assert sections.is_visible()


def test_the_header_of_a_narrow_page_does_not_cover_what_has_the_focus(open_page):
    page = open_page(reduced_motion="reduce").open(TILED)
    page.set_viewport_size({"width": 320, "height": 256})
    last = page.locator("article summary").last
    last.scroll_into_view_if_needed()
    for _ in range(20):
        page.keyboard.press("Shift+Tab") if page.evaluate("document.activeElement !== document.body") else last.focus()
        covered = """() => {
            const {left, top, height} = document.activeElement.getBoundingClientRect();
            return height < innerHeight / 2 && top < document.querySelector('header').getBoundingClientRect().bottom;
        }"""
        assert not page.evaluate(covered), page.evaluate("document.activeElement.outerHTML")


def test_the_focus_is_seen_in_the_search_and_nothing_slides_where_motion_is_reduced(open_page):
    page = open_page(reduced_motion="reduce").open(TILED)
    page.locator(".sidebar-search").focus()
    style = "name => getComputedStyle(document.querySelector(name))"
    assert page.evaluate(f"({style})('.sidebar-search').outlineStyle") == "solid"
    assert page.evaluate(f"({style})('html').scrollBehavior") == "auto"


def test_headings_of_views_are_below_that_of_their_section(open_page):
    opened = open_page()
    page = opened.open(TILED)
    opened.wake()
    levels = "view => [...view.querySelectorAll('h2')].map(heading => heading.ariaLevel)"
    assert page.locator(".labkit-host").first.evaluate(levels) == ["2"]  # below the chapter's
    kernel = page.locator("section#the-kernel > .cell .labkit-host[data-view=playground]")
    assert kernel.evaluate(levels) == ["3", "4"]


def test_counters_stand_over_their_names(open_page):
    opened = open_page()
    page = opened.open(TILED)
    opened.wake()
    counter = page.locator(".labkit-host .counted div").first
    assert counter.locator("dd").bounding_box()["x"] == counter.locator("dt").bounding_box()["x"]


def test_a_fold_is_called_what_it_says_and_is_plain(open_page):
    page = open_page().open(TILED)
    fold = page.locator("details.hide summary").first
    assert fold.inner_text().strip() == "Folded code"
    assert fold.get_attribute("aria-label") is None  # which would be its name in place of what it says
    assert fold.locator("p:visible").evaluate("p => getComputedStyle(p).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert fold.locator("p:visible").evaluate("p => getComputedStyle(p, '::before').display") == "none"


def test_what_is_folded_is_open_to_all(open_page):
    opened = open_page()
    page = opened.open(TILED)
    page.evaluate("document.querySelectorAll('article details').forEach(details => { details.open = true; })")
    page.wait_for_timeout(500)
    assert opened.violations() == []


def test_a_view_answers_buttons_and_keys(open_page):
    page = open_page().open(TILED)
    view = page.locator(".labkit-host .labkit-view").first
    view.locator("button[aria-label='step forward']").click()
    assert view.get_attribute("data-step") == "1"
    view.press("ArrowRight")
    assert view.get_attribute("data-step") == "2"


@pytest.mark.parametrize("name", ["index.html", TILED])
def test_without_javascript_each_view_has_its_sentence_and_a_picture(open_page, name):
    page = open_page(java_script_enabled=False).open(name)
    for view in page.locator(".labkit-host").all():
        assert len(view.locator(".labkit-still").inner_text()) > 10
        if view.get_attribute("data-view") not in ("predict", "compare"):
            picture = view.locator("img")
            picture.scroll_into_view_if_needed()
            assert picture.bounding_box()["height"] > 100
            assert picture.evaluate("image => image.naturalWidth") > 100


def test_an_answer_is_kept_back_until_there_is_a_guess(open_page):
    page = open_page().open(TILED)
    answer = page.locator(".labkit-host[data-view=compare]").first
    answer.scroll_into_view_if_needed()
    answer.get_by_text("Keep a guess above").wait_for()
    assert "It is" not in answer.inner_text()
    question = page.locator(".labkit-host[data-view=predict]").first
    question.locator("input[type=number]").fill("16")
    question.locator("button").click()
    assert "too high" in answer.inner_text()
    assert "You said 16" in answer.inner_text()


def test_an_answer_can_be_seen_without_a_guess(open_page):
    page = open_page().open(TILED)
    answer = page.locator(".labkit-host[data-view=compare]").first
    answer.scroll_into_view_if_needed()
    answer.get_by_role("button", name="Show the answer").click()
    assert "You made no guess" in answer.inner_text()


def test_a_playground_moves_among_the_runs_that_its_page_holds(open_page):
    page = open_page().open(TILED)
    playground = page.locator(".labkit-host[data-view=playground]").first
    playground.scroll_into_view_if_needed()
    slider = playground.locator("input[type=range]:enabled").first
    before, text = slider.input_value(), playground.inner_text()
    slider.press("ArrowRight")
    if slider.input_value() == before:
        slider.press("ArrowLeft")
    assert slider.input_value() != before
    assert playground.inner_text() != text


@pytest.mark.parametrize(
    "fault",
    [
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }, configurable: true})",
        "Storage.prototype.setItem = () => { throw new Error('full'); }",
    ],
)
def test_colours_can_be_chosen_where_the_browser_keeps_nothing(open_page, fault):
    opened = open_page()
    opened.page.add_init_script(fault)
    page = opened.open(TILED)
    themes = []
    for _ in range(3):
        page.locator(".theme-toggle-content button").click()
        themes.append(page.evaluate("document.body.dataset.theme"))
    assert sorted(themes) == ["auto", "dark", "light"]
    assert opened.faults == []


def test_a_page_says_what_it_is_about(pages):
    text = (pages / TILED).read_text(encoding="utf-8")
    assert '<meta name="description" content="In chapter 02, 16 neighbouring threads' in text


def test_the_first_page_switches_between_kernels(open_page):
    page = open_page().open("index.html")
    shown = page.locator(".labkit-switch .labkit-host:visible")
    assert shown.count() == 1
    before = shown.inner_text()
    page.locator(".labkit-switch select").first.select_option(index=1)
    assert shown.count() == 1
    assert shown.inner_text() != before


def test_search_finds_a_chapter(open_page):
    page = open_page().open("search.html?q=shared+memory")
    page.get_by_role("link", name="Tiled GEMM").first.wait_for()


def test_words_of_earlier_chapters_tell_their_meaning(open_page):
    page = open_page().open(TILED)
    word = page.locator("article a[title][href*=glossary]").first
    title = word.get_attribute("title")
    word.click()
    page.wait_for_load_state()
    assert title.partition("'")[0] in page.locator(":target").inner_text()  # a page has curly quotes


def test_no_solution_is_shown(pages):
    """A page has the stub of each exercise, and neither its solution nor the verdict of its check."""
    text = (pages / TILED).read_text(encoding="utf-8")
    for id in book_contents().chapter("tiled-gemm").exercises:
        assert exercise(id).title in text
    assert "Right: " not in text
    assert "BEGIN SOLUTION" not in text


def top(page, name):
    """Where the element is on the screen, in pixels from its upper edge, once all is at rest."""
    page.wait_for_timeout(1500)
    return page.locator(name).bounding_box()["y"]


def test_a_link_to_a_heading_leads_there_although_views_above_it_are_drawn_later(open_page):
    page = open_page().open(f"{TILED}#exercises")
    assert 0 <= top(page, "#exercises") < 150
    page.set_viewport_size({"width": 1440, "height": 900})  # the list of headings is beside the text
    page.get_by_role("link", name="Banks", exact=True).first.click()
    assert 0 <= top(page, "#banks") < 150


def test_a_reader_who_comes_back_is_at_the_same_place(open_page):
    page = open_page().open(TILED)
    page.evaluate("document.querySelector('#banks').scrollIntoView()")
    before = top(page, "#banks")
    page.locator(".sidebar-tree a", has_text="Glossary").click()
    page.wait_for_load_state()
    page.go_back()
    assert top(page, "#banks") == pytest.approx(before, abs=20)


@pytest.mark.parametrize("width", [1320, 1366, 1440, 1536, 1920])
def test_the_lists_beside_a_chapter_are_whole(open_page, width):
    page = open_page().open(TILED)
    page.set_viewport_size({"width": width, "height": 768})
    drawer = page.locator(".toc-drawer").bounding_box()
    assert drawer["x"] + drawer["width"] <= width
    assert page.locator("article").bounding_box()["x"] >= 240


def test_a_page_tells_how_to_run_its_chapter(open_page):
    page = open_page().open(TILED)
    page.get_by_role("link", name="Run the chapter yourself").click()
    page.wait_for_load_state()
    assert 0 <= top(page, "#run-it-on-your-own-computer") < 600  # it is the page's end
    assert "make lab" in page.locator("#run-it-on-your-own-computer").inner_text()


def test_the_first_page_says_what_it_is_above_the_picture_and_lists_the_chapters(open_page):
    page = open_page().open("index.html")
    start = page.get_by_role("link", name="Start reading")
    assert start.bounding_box()["y"] < page.locator(".labkit-switch").bounding_box()["y"]
    assert page.locator("#chapters a", has_text="Tiled GEMM").get_attribute("href") == TILED


def test_figures_of_a_playground_stand_above_their_names(open_page):
    page = open_page().open(TILED)
    playground = page.locator(".labkit-host[data-view=playground]").first
    playground.scroll_into_view_if_needed()
    name, figure = (playground.locator(f".counted {tag}").first.bounding_box()["x"] for tag in ("dt", "dd"))
    assert name == figure


def test_the_key_hint_is_only_where_there_are_keys(open_page):
    for options, seen in [({}, True), ({"has_touch": True, "is_mobile": True}, False)]:
        page = open_page(**options).open(TILED)
        view = page.locator(".labkit-host .labkit-view").first
        assert view.locator(".bar kbd").first.is_visible() is seen


def test_a_printed_page_has_its_charts_and_colours_at_once(open_page):
    page = open_page().open(TILED)
    page.emulate_media(media="print")
    drawn = """() => {
        window.dispatchEvent(new Event('beforeprint'));
        return [...document.querySelectorAll('[data-view=chart]')].map(host => host.querySelectorAll('svg').length);
    }"""
    charts = page.evaluate(drawn)
    assert charts
    assert set(charts) == {1}
    legend = page.locator(".labkit-view .legend i").first
    assert legend.evaluate("mark => getComputedStyle(mark).printColorAdjust") == "exact"
