"""Where texts of a view's canvases are, so that a test sees those that touch or cross an edge."""

from itertools import combinations

RECORD = """() => {
    window.written = [];
    const draw = CanvasRenderingContext2D.prototype.fillText, clear = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
        written = written.filter(one => one.canvas !== this.canvas.ariaLabel);
        clear.apply(this, box);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...most) {
        const size = this.measureText(text);
        written.push({text: String(text), canvas: this.canvas.ariaLabel, wide: this.canvas.clientWidth,
            left: x - size.actualBoundingBoxLeft, right: x + size.actualBoundingBoxRight,
            top: y - size.actualBoundingBoxAscent, bottom: y + size.actualBoundingBoxDescent});
        draw.call(this, text, x, y, ...most);
    };
}"""


def written(browser, view, path, width, keys=()):
    """Return the texts on the canvases of a view that is `width` pixels wide inside, after some keys."""
    view.save_html(path)
    page = browser.new_page(viewport={"width": width + 38, "height": 900})
    page.add_init_script(f"({RECORD})()")
    page.goto(path.as_uri())
    page.wait_for_selector(".labkit-view[data-revision]")
    assert page.evaluate("() => document.querySelector('.labkit-view .body').clientWidth") == width
    page.locator(".labkit-view").first.focus()
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(100)
    found = page.evaluate("() => written")
    page.close()
    return found


def touching(texts, gap=0):
    """Return pairs of texts of one canvas that are nearer than `gap` pixels side by side, or on each other."""
    return [
        (a["text"], b["text"])
        for a, b in combinations(texts, 2)
        if a["canvas"] == b["canvas"]
        and a["left"] < b["right"] + gap
        and b["left"] < a["right"] + gap
        and a["top"] < b["bottom"]
        and b["top"] < a["bottom"]
    ]
