"""The book's pages, built, and a browser that may reach nothing but them."""

import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import axe_playwright_python
import pytest
from sampling import WHOLE

from labkit import places
from labkit.bench._lab import find_chromium

SITE = places.CHECKOUT / "site"
SOURCES = "conf.py", "index.md", "reference.rst", "functions.rst", "static", "templates"
SAMPLE = "tiled-gemm", "glossary"  # a prediction, playgrounds, orders of a race
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """The folder of the built pages: of three chapters, or of all in `make test-long`."""
    folder = tmp_path_factory.mktemp("site")
    for name in SOURCES:
        copy = shutil.copytree if (SITE / name).is_dir() else shutil.copy
        copy(SITE / name, folder / name)
    sample = (
        "-D",
        f"chapters={' '.join(SAMPLE)}",
        "-D",
        "exclude_patterns=chapters/contents.md,reference.rst,functions.rst",
    )
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", *(() if WHOLE else sample)]
    command += [folder, folder / "build" / "html"]
    built = subprocess.run(command, capture_output=True, text=True, cwd=places.CHECKOUT)
    assert built.returncode == 0, built.stderr
    return folder / "build" / "html"


@pytest.fixture(scope="session")
def address(pages):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=pages))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="module")  # one that outlived its file would keep other files from opening theirs
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield opened
        opened.close()


class Page:
    """An open page: what it complained of, what it asked of other machines, and how many bytes it loaded."""

    def __init__(self, context, address):
        self.address = address
        self.faults = []
        self.bytes_loaded = 0
        self.page = context.new_page()
        self.page.on("console", lambda said: said.type == "error" and self.faults.append(said.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self.note)
        self.page.on("requestfinished", self.weigh)

    def note(self, request):
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"asks {request.url}")

    def weigh(self, request):
        sizes = request.sizes()
        self.bytes_loaded += sizes["responseBodySize"] + sizes["responseHeadersSize"]

    def open(self, name):
        self.page.goto(self.address + name)
        self.page.wait_for_load_state("networkidle")
        return self.page

    def wake(self):
        """Have every view drawn, as for print; returns how many there are and how many live."""
        self.page.evaluate("for (const name of ['beforeprint', 'afterprint']) window.dispatchEvent(new Event(name))")
        count = "name => document.querySelectorAll(name).length"
        return self.page.evaluate(count, ".labkit-host"), self.page.evaluate(count, ".labkit-host > .labkit-view")

    def violations(self):
        """What axe-core finds: the rule, and the first element that breaks it."""
        self.page.evaluate(AXE)
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]


@pytest.fixture
def open_page(browser, address):
    contexts = []

    def open_one(**options):
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}, **options))
        return Page(contexts[-1], address)

    yield open_one
    for context in contexts:
        context.close()
