"""The fragments view shows what the lanes of a run held, in every format, for products that are right."""

import numpy as np
import pytest

import labkit
from labkit import cuda, ptx
from labkit.bench._lab import find_chromium
from labkit.formats import FORMATS as BY_NAME
from labkit.views import fragments
from labkit.views.fragments import cells

FORMAT = ptx.BF16
FORMATS = {"bfloat16": ptx.BF16, "TF32": ptx.TF32, "e4m3": ptx.E4M3}


@cuda.jit
def one_mma(A, B, C):
    sums = cuda.local.array(4, np.float32)
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    for n in range(4):
        sums[n] = 0
    a0, a1 = A[g, t], A[g + 8, t]
    a2, a3 = A[g, t + 4], A[g + 8, t + 4]
    b0, b1 = B[g, t], B[g, t + 4]
    ptx.mma(sums, 0, (a0, a1, a2, a3), (b0, b1), FORMAT)
    C[g, 2 * t], C[g, 2 * t + 1] = sums[0], sums[1]
    C[g + 8, 2 * t], C[g + 8, 2 * t + 1] = sums[2], sums[3]


@cuda.jit
def no_mma(A, B, C):
    lane = cuda.threadIdx.x
    C[lane // 8, lane % 8] = A[lane // 8, lane % 8] + B[lane // 8, lane % 8]


def traced(number, kernel=one_mma):
    format = next(one for one in BY_NAME.values() if one.number == number)
    k = 32 // format.itemsize
    rng = np.random.default_rng(number)
    A, B = (format.encode(rng.integers(-4, 5, (rows, k))) for rows in (16, 8))
    if kernel is one_mma:
        kernel = labkit.specialise(kernel, FORMAT=number)
    trace = labkit.simulate(kernel, 1, 32, A.view(np.uint32), B.view(np.uint32), np.zeros((16, 8), np.float32))
    return trace, format.decode(A) @ format.decode(B).T


@pytest.fixture(scope="module")
def view():
    found = {name: traced(number) for name, number in FORMATS.items()}
    for trace, right in found.values():
        assert (trace.outputs[2] == right).all()  # so what the lanes hold is what an `mma` takes
    return fragments({name: trace for name, (trace, _) in found.items()})


def test_the_picture_has_what_a_lane_holds_in_its_place_and_b_turned(view):
    """Lane 6 is g = 1, t = 2: of B row 1, which is drawn as column 1."""
    of_a, of_b, of_c = cells(view.data["choices"]["bfloat16"], 6)
    assert of_a == [(1 + 8 * (r % 2), 4 + 8 * (r // 2) + i, f"a{r}") for r in range(4) for i in range(2)]
    assert of_b == [(4 + 8 * r + i, 1, f"b{r}") for r in range(2) for i in range(2)]
    assert of_c == [(1, 4, "c0"), (1, 5, "c1"), (9, 4, "c2"), (9, 5, "c3")]


def held(choice, lane):
    return choice["table"]["rows"][lane][1:]


def test_a_lane_holds_two_elements_a_register_in_a_format_of_16_bits(view):
    assert held(view.data["choices"]["bfloat16"], 6) == [
        *("A[1, 4:6]", "A[9, 4:6]", "A[1, 12:14]", "A[9, 12:14]"),
        *("B[1, 4:6]", "B[1, 12:14]"),
        *("C[1, 4]", "C[1, 5]", "C[9, 4]", "C[9, 5]"),
    ]


def test_a_format_cuts_the_same_words_otherwise(view):
    assert held(view.data["choices"]["TF32"], 6)[:3] == ["A[1, 2]", "A[9, 2]", "A[1, 6]"]
    assert held(view.data["choices"]["e4m3"], 6)[:3] == ["A[1, 8:12]", "A[9, 8:12]", "A[1, 24:28]"]


@pytest.mark.parametrize("name", FORMATS)
def test_the_lanes_hold_every_element_once(view, name):
    choice = view.data["choices"][name]
    for first, last, elements in ((1, 5, 16 * choice["k"]), (5, 7, 8 * choice["k"]), (7, 11, 16 * 8)):
        parts = [part for row in choice["table"]["rows"] for part in row[first:last]]
        assert len(set(parts)) == len(parts)
        each = choice["each"][0] if last < 11 else 1
        assert len(parts) * each == elements


def test_another_kernel_is_refused(view):
    with pytest.raises(ValueError, match="makes one `mma`"):
        fragments({"sum": traced(ptx.BF16, no_mma)[0]})


def test_a_still_picture_is_drawn(view, tmp_path):
    view.save_png(tmp_path / "fragments.png", step=31)
    assert (tmp_path / "fragments.png").stat().st_size > 10_000


@pytest.mark.needs("chromium")
def test_another_format_keeps_the_lane_and_the_keyboard(view, tmp_path):
    from playwright.sync_api import sync_playwright

    view.save_html(tmp_path / "fragments.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((tmp_path / "fragments.html").as_uri())
        page.keyboard.press("Tab")
        page.keyboard.press("End")
        assert "Lane 31" in page.locator(".say").inner_text()
        page.get_by_label("format").select_option("e4m3")
        assert "Lane 31 (g = 7, t = 3) holds A[7, 12:16]" in page.locator(".say").inner_text()
        assert page.evaluate("document.activeElement.tagName") == "SELECT"
        page.locator("canvas").click(position={"x": 60, "y": 560})  # a cell of A
        assert "Lane 31" not in page.locator(".say").inner_text()
        browser.close()
