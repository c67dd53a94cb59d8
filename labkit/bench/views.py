"""`labkit bench views`: the response time of views, in a real JupyterLab in headless Chromium.

A playground runs a kernel again when a slider moves, with the grid, block and arguments that `setup` returns, and
shows the run by an inner view, here `tiling`. `main` stores the times in the package (`record`) or in a folder (`out`).
"""

import tempfile
from pathlib import Path
from statistics import median

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from labkit.bench import _lab, _record

SIDE = 64
TILES = list(range(4, 29))
NOTEBOOK = "views.ipynb"
METADATA = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
SETUP = f"""
from labkit import gemm
from labkit.views import playground

def setup(TILE):
    blocks = -(-{SIDE} // TILE)
    return (blocks, blocks), (TILE, TILE), *gemm.Problem({SIDE}, {SIDE}, {SIDE}).operands()
"""
PLAYGROUND = f"playground(gemm.step('fp32', 'tiled').kernel, setup, TILE={TILES})"
COLUMNS = {"view": "", "problem": "", "measure": "", "median": ".1f", "worst": ".1f"}


def main(record=False, out=None) -> None:
    if _lab.find_chromium() is None:
        raise SystemExit("this bench drives a browser: install chromium")
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / NOTEBOOK)
        with _lab.serve(Path(folder)) as server, _lab.browse(*server) as lab:
            lab.open(NOTEBOOK)
            lab.run_all()
            frames = [lab.frames_per_s("playground") for _ in range(3)]
            times_ms = [lab.slide("playground", "TILE", position) for position in _positions_not_seen()]
            lab.stop_kernels()
    rows = [
        _row("playground", "slider to picture, a tile not seen before, ms", times_ms, max(times_ms)),
        _row("tiling", "frames a second while stepping", frames, min(frames)),
    ]
    _record.print_table("views in headless Chromium", rows, COLUMNS)
    _record.store_if_requested("views", rows, _record.cpu_name(), record, out)


def _positions_not_seen():
    """Return every position of the slider but the middle, where it starts, from there outwards."""
    middle = len(TILES) // 2
    return [at for step in range(1, middle + 1) for at in (middle - step, middle + step)]


def _row(view, measure, values, worst):
    problem = f"{SIDE}x{SIDE}x{SIDE}"
    return {"view": view, "problem": problem, "measure": measure, "median": median(values), "worst": worst}


def _write(path):
    cells = [new_code_cell(SETUP.strip(), id="setup"), new_code_cell(PLAYGROUND, id="playground")]
    nbformat.write(new_notebook(cells=cells, metadata=METADATA), path)
