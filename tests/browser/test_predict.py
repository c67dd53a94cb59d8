"""A guess typed into a real JupyterLab, whose own keys must not take it away."""

import pytest

from labkit.bench import _lab
from labkit.exercises.contents import book_contents

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(300)]

QUESTION = "from labkit.views import predict\n\nguess = predict('How many?', unit='loads')\nguess"


def test_a_guess_kept_with_enter_is_compared(tmp_path):
    with _lab.serve(tmp_path) as server, _lab.browse(*server) as lab:
        lab.open(f"{book_contents().chapter('first-gpu-matmul').name}.ipynb")
        question, comparison = [cell["id"] for cell in lab.cells() if cell["kind"] == "code"][:2]
        lab.edit(question, QUESTION)
        cell = lab.cell(question)
        guess = cell.locator("[data-labkit-live] input[type=number]")
        guess.fill("-3")
        guess.press("Enter")
        assert cell.get_by_text("Kept").count() == 0  # nobody loads less than nothing
        guess.fill("32")
        guess.press("Enter")
        cell.get_by_text("Kept: 32 loads").wait_for()
        lab.edit(comparison, "guess.compare(4)")
        lab.cell(comparison).get_by_text("your guess was 8 times too high").first.wait_for()
        assert lab.complaints == []
        lab.stop_kernels()
