"""A real JupyterLab on a copy of the book, driven in headless Chromium."""

import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

START_S = 60
THUMB_PX = 16  # width of a slider's handle in Chromium


def find_chromium() -> str | None:
    """Return the path of a Chromium or Chrome on this machine."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


# Returns what `Lab.picture` does, or null until the view of the active cell is drawn.
PICTURE_JS = """() => {
    const cell = document.querySelector('.jp-Notebook-cell.jp-mod-active');
    const visible = node => node && node.getBoundingClientRect().height > 20;
    const live = cell.querySelector('[data-labkit-live] .labkit-view');
    const frame = [...cell.querySelectorAll('iframe[data-labkit]')].find(visible);
    const view = visible(live) ? live : frame?.contentDocument?.querySelector('.labkit-view');
    if (!visible(view) || !view.innerText) return null;
    const drawn = canvas => {
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(new Uint32Array(pixels.buffer)).size > 1;
    };
    const canvases = [...view.querySelectorAll('canvas')].map(one => drawn(one) ? one.toDataURL() : '');
    return {live: view === live, text: view.innerText, canvases};
}"""

# Resolves to the milliseconds from the slider's last move until the frame with the next update is painted.
RESPONSE_TIME_JS = """(view, name) => {
    let began = 0;
    const slider = view.querySelector(`input[aria-label="${name}"]`);
    slider.addEventListener('input', () => began = performance.now());
    return {shown: new Promise(resolve => new MutationObserver((_, observer) => {
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
    }).observe(view, {attributes: true, attributeFilter: ['data-revision']}))};
}"""

# Steps a view once a frame with its own key, and resolves to the frames per second.
STEP_THROUGH_JS = """view => new Promise(resolve => {
    const last = Number(view.querySelector('input[aria-label^="step of"]').max);
    const press = key => view.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    let began = 0, frames = 0;
    press('Home');
    const frame = now => {
        began ||= now;
        if (Number(view.dataset.step) === last) return resolve(1000 * frames / (now - began));
        press('ArrowRight');
        frames += 1;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
})"""


class Lab:
    """A page that shows JupyterLab; `complaints` collects what the browser's console calls an error."""

    def __init__(self, page, address: str, token: str):
        self.page = page
        self.address = address
        self.token = token
        self.complaints: list[str] = []
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, notebook: str):
        """Show a notebook of the workspace, and wait until its kernel can run cells."""
        self.page.goto(f"{self.address}/lab/tree/{notebook}?token={self.token}&reset")
        self.page.wait_for_function(
            """() => {
                const panel = window.jupyterapp?.shell.currentWidget;
                const kernel = panel?.sessionContext?.session?.kernel;
                return kernel?.status === 'idle' && panel.content?.model?.cells.length > 0;
            }""",
            timeout=START_S * 1000,
        )

    def run_all(self, timeout_s: float = 300):
        """Run the notebook from top to bottom; a cell that fails stops it."""
        self.page.set_default_timeout(timeout_s * 1000)
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")

    def cells(self) -> list[dict]:
        """id, kind, source, execution count and error (or None) of every cell."""
        return self.page.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells].map(model => {
                const cell = model.toJSON();
                const failed = (cell.outputs ?? []).find(output => output.output_type === 'error');
                const error = failed ? `${failed.ename}: ${failed.evalue}` : null;
                const source = model.sharedModel.getSource();
                const count = cell.execution_count ?? null;
                return {id: cell.id, kind: cell.cell_type, source, count, error};
            })"""
        )

    def cell(self, id: str):
        """Scroll to a cell, make it the active one, and return it."""
        self.page.evaluate(
            """async id => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                const index = [...notebook.model.cells].findIndex(model => model.id === id);
                notebook.activeCellIndex = index;
                await notebook.scrollToItem(index);
            }""",
            id,
        )
        return self.page.locator(".jp-Notebook-cell.jp-mod-active").first

    def edit(self, id: str, source: str):
        """Write new source into a cell, as typing would, and run it."""
        self.cell(id)
        self.page.evaluate(
            """async source => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                notebook.activeCell.model.sharedModel.setSource(source);
                await window.jupyterapp.commands.execute('notebook:run-cell');
            }""",
            source,
        )

    def views(self) -> list[str]:
        """Return the ids of the cells whose output holds a view."""
        return self.page.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
                .map(model => model.toJSON())
                .filter(cell => JSON.stringify(cell.outputs ?? []).includes('data-labkit='))
                .map(cell => cell.id)"""
        )

    def picture(self, id: str) -> dict:
        """Return what a cell's view shows once it has settled.

        Returns
        -------
        dict
            live: True if a widget shows it, False if the page does that replaces one; text: its words;
            canvases: each as a data URL, or "" where nothing is drawn.
        """
        self.cell(id)
        shown = self.page.wait_for_function(PICTURE_JS, timeout=START_S * 1000)
        return shown.json_value()

    def slide(self, id: str, name: str, position: int) -> float:
        """Drag a slider of a cell's live view to a position; the milliseconds until the view has changed."""
        view = self.cell(id).locator("[data-labkit-live] > .labkit-view")
        slider = view.locator(f"input[aria-label='{name}']")
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        track_px, y = box["width"] - THUMB_PX, box["y"] + box["height"] / 2
        last, now = int(slider.get_attribute("max")), int(slider.input_value())
        x_now, x_target = (box["x"] + THUMB_PX / 2 + track_px * value / last for value in (now, position))
        clock = view.evaluate_handle(RESPONSE_TIME_JS, name)
        self.page.mouse.move(x_now, y)
        self.page.mouse.down()
        self.page.mouse.move(x_target, y)
        self.page.mouse.up()
        return clock.evaluate("clock => clock.shown")

    def frames_per_s(self, id: str) -> float:
        """Measure the frame rate while a cell's innermost view goes through its steps, one per frame."""
        view = self.cell(id).locator("[data-labkit-live] .labkit-view").last
        view.scroll_into_view_if_needed()
        return view.evaluate(STEP_THROUGH_JS)

    def stop_kernels(self):
        self.page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")

    def save(self):
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")


@contextmanager
def serve(workspace: Path):
    """`labkit lab` on a workspace: yields its address and token."""
    token = secrets.token_hex(16)
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "labkit.cli", "lab", "--workspace", str(workspace), "--no-browser"]
    command += [f"--ServerApp.port={port}", f"--IdentityProvider.token={token}", "--ServerApp.port_retries=0"]
    command.append("--LabApp.expose_app_in_browser=True")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        try:
            if not _answers(f"{address}/api/status?token={token}", server):
                log.seek(0)
                raise RuntimeError(f"JupyterLab served no page within {START_S} s:\n{log.read()[-2000:]}")
            yield address, token
        finally:
            server.terminate()
            server.wait(30)


@contextmanager
def browse(address: str, token: str, *, dark: bool = False):
    """Open a headless Chromium on that server; yields a `Lab`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000}, color_scheme="dark" if dark else "light")
        try:
            yield Lab(page, address, token)
        finally:
            browser.close()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(url, server):
    """Wait for the server's answer; False if the server ends or the time is up before."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urlopen(url, timeout=5):
                return True
        except (URLError, TimeoutError):
            time.sleep(0.2)
    return False
