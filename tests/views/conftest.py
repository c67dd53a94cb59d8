"""A browser for views that are saved as pages."""

import pytest

from labkit.bench._lab import find_chromium


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield opened
        opened.close()
