"""Sliders bound to a kernel's parameters: each move runs the simulator again and redraws the view."""

import inspect
import math
from itertools import product
from numbers import Integral
from typing import Any

import labkit
from labkit import loops
from labkit.forecast.roofline import time_bound
from labkit.machine.gpus import Cpu
from labkit.rebinding import names_used_by
from labkit.simulator.errors import SimulatorError
from labkit.table import count_text, short_number
from labkit.trace import Trace
from labkit.views.base import STATIC, View, read_static
from labkit.views.outdated import after_each_cell, notebook_shell
from labkit.views.tiling import tiling
from labkit.views.wording import type_name

_MAX_PAGE_STATES = 8  # how many slider positions a page without a kernel holds, at most
INNER_SCRIPTS = sorted({path.stem for path in STATIC.glob("*.js")} - {"base", "page", "playground"})
_RECORDED_ACCESSES = 2000  # accesses of a loop that are kept one by one, for the views


def playground(
    kernel, setup, view=tiling, counters=None, record=None, cpu: str | Cpu | None = None, advice=True, **sliders
) -> View:
    """Try a kernel's parameters: a view, its counters and its findings follow the sliders.

    If the notebook has several kernels of this name, the newest one is run, so that editing its cell
    and moving a slider shows the edited kernel.

    Parameters
    ----------
    kernel
        What `cuda.jit` returned, or a plain function.
    setup
        Called with the sliders that it names; returns `grid, block, *arguments` of the launch,
        or only the arguments of a loop.
    view
        Which view of the Trace to show. It is also given the sliders that it names.
    counters
        Which numbers to show: called with the Trace, it returns each number's text by its label. The usual ones if
        left out.
    record
        Index of the block to record, or a list of them; one block inside the grid if left out.
    cpu
        For a loop of chapter 01: the CPU whose caches it is traced through.
    advice
        False folds the advice, for a kernel that is short on purpose; errors are shown in any case.
    **sliders
        The values each parameter can take: a range `(low, high)` or `(low, high, step)`, or a list. The first position
        is the value that the kernel has, or else the middle one. Constants of the kernel are set by `specialise`.

    Examples
    --------
    >>> def setup(TILE, N):
    ...     A = np.random.default_rng(0).random((N, N), np.float32)
    ...     return (-(-N // TILE), -(-N // TILE)), (TILE, TILE), A, A, np.zeros_like(A)
    >>> playground(tiled, setup, TILE=[4, 8, 16], N=(16, 64, 16))
    """
    if not callable(kernel):
        raise TypeError(f"playground takes a kernel or a loop, not {type_name(kernel)}.")
    if not callable(setup):
        raise TypeError(f"setup is a function that returns what the kernel is launched with, not {type_name(setup)}.")
    choices = {name: _choices(name, slider) for name, slider in sliders.items()}
    return Playground(kernel, setup, view, counters or _counters, record, cpu, advice, choices)


class Playground(View):
    """The view that `playground` returns; `move(TILE=8)` does what a slider does."""

    def __init__(self, kernel, setup, view, counters, record, cpu, advice, choices):
        self.kernel, self.setup, self.view, self.counters = kernel, setup, view, counters
        self.record, self.cpu, self.advice = record, cpu, advice
        function: Any = getattr(kernel, "py_func", kernel)
        self.name = function.__name__
        self.choices = choices
        self.trace: Trace | loops.LoopTrace | None = None
        self._shown = None
        self._before = {}
        data = self._state(_start_positions(kernel, choices))
        super().__init__("playground", f"Playground: `{self.name}`", data, self._draw_still)
        after_each_cell(self, Playground.note_edit)

    def move(self, **values):
        """Set sliders to these of their values, run, and show the result."""
        positions = dict(self.data["positions"])
        for name, value in values.items():
            if value not in self.choices.get(name, ()):
                offered = ", ".join(f"{name} in {values}" for name, values in self.choices.items())
                raise ValueError(f"{name} cannot be {value}; the sliders hold {offered}.")
            positions[name] = self.choices[name].index(value)
        self.update(self._state(positions))

    def handle_message(self, message):
        """Run again, since a slider moved in the browser or the button was pressed."""
        self.update({**self._state(message["positions"]), "serial": message["serial"]})

    def note_edit(self):
        """Say in the view if the notebook has another kernel of that name by now than the one that ran."""
        is_stale = _code(_newest_kernel(self.kernel, self.name)) != self._ran
        if is_stale != self.data.get("stale", False):
            self.update({**self.data, "stale": is_stale})

    def module(self):
        """Return JavaScript with every view's file by name: only a successful run decides which view is shown."""
        return self._module_with(INNER_SCRIPTS)

    def page_module(self, data):
        """Return JavaScript with the views that the page's runs show: a page has no kernel that could show another."""
        return self._module_with({state["shown"]["script"] for state in data["kept"] if state["shown"]})

    def _module_with(self, names):
        scripts = {name: read_static(f"{name}.js") for name in sorted(names)}
        views = ",\n".join(f"{name}: (() => {{\n{text}\nreturn view;\n}})()" for name, text in scripts.items())
        return read_static("base.js") + f"const inner = {{\n{views}\n}};\n" + read_static("playground.js")

    def page_data(self):
        """Run a few positions of the sliders for the page: each slider's ends and middle.

        The first picture is in the page once: among the runs.
        """
        states, shown, trace, counters_before = [], self._shown, self.trace, self._before
        start = self.data["positions"]
        corners = {name: sorted({0, len(v) // 2, len(v) - 1}) for name, v in self.choices.items()}
        wanted = [start, *({**start, name: at} for name in corners for at in corners[name])]
        if math.prod(map(len, corners.values())) <= _MAX_PAGE_STATES:
            wanted = [start, *(dict(zip(corners, at, strict=True)) for at in product(*corners.values()))]
        for positions in wanted:
            if positions not in [state["positions"] for state in states] and len(states) < _MAX_PAGE_STATES:
                self._before = {}
                states.append(self._state(positions))
        self._shown, self.trace, self._before = shown, trace, counters_before
        states.sort(key=lambda state: list(state["positions"].values()))
        return {**self.data, "shown": None, "kept": states}

    def _state(self, positions):
        values = {name: self.choices[name][at] for name, at in positions.items()}
        error = None
        try:
            self.trace = self._run(values)
            named = list(inspect.signature(self.view).parameters)[1:]
            self._shown = self.view(self.trace, **{name: value for name, value in values.items() if name in named})
            counters = self.counters(self.trace)
            rows = [[label, value, self._before.get(label, "")] for label, value in counters.items()]
            self._before = counters
        except Exception as problem:  # whatever the learner's kernel or setup raises is shown in the view
            is_simulator_error = isinstance(problem, SimulatorError)
            error = str(problem) if is_simulator_error else f"{type(problem).__name__}: {problem}"
            rows = []
        found = self.trace.findings if self.trace and not error else ()
        setting = ", ".join(f"{name} = {value}" for name, value in values.items())
        return {
            "say": f"{setting}: **{error}**" if error else f"{setting}: {_findings_sentence(found, self.advice)}",
            "sliders": [{"name": n, "values": [str(v) for v in vs]} for n, vs in self.choices.items()],
            "positions": positions,
            "setting": setting,
            "shown": self._shown and {"script": self._shown.script, "data": self._shown.data},
            "error": error,
            "counters": rows,
            "findings": [{"severity": f.severity, "message": f.message} for f in found],
            "advice": self.advice,
        }

    def _run(self, values):
        kernel: Any = _newest_kernel(self.kernel, self.name)
        self._ran = _code(kernel)
        parameters = inspect.signature(self.setup).parameters
        for name, value in values.items():
            try:
                kernel = labkit.specialise(kernel, **{name: value})
            except NameError as unused:
                if name not in parameters:
                    problem = f"The slider {name} changes nothing: neither {self.name} nor setup names it."
                    raise ValueError(problem) from unused
        prepared = self.setup(**{name: v for name, v in values.items() if name in parameters})
        expected = "grid, block, *arguments" if self.cpu is None else "argument, ..."
        if not isinstance(prepared, tuple | list) or len(prepared) < (2 if self.cpu is None else 1):
            description = f"{len(prepared)} of them" if isinstance(prepared, tuple | list) else type_name(prepared)
            raise ValueError(f"setup returns `{expected}`, not {description}.")
        if self.cpu is not None:
            return loops.trace(kernel, *prepared, cpu=self.cpu, record=_RECORDED_ACCESSES)
        grid, block, *arguments = prepared
        record = _inner_block(grid) if self.record is None else self.record
        recorded = record if isinstance(record, list) else [record]
        return labkit.simulate(kernel, grid, block, *arguments, record=recorded)

    def _draw_still(self, figure, data, step):
        if self._shown:
            self._shown.draw_still(figure, self._shown.data, step)


def _inner_block(grid):
    """Return the block at index 1 of each axis that has more than one block."""
    sizes = grid if isinstance(grid, tuple | list) else (grid,)
    return tuple(int(isinstance(size, Integral) and int(size) > 1) for size in sizes[:3])


def _choices(name, slider):
    if isinstance(slider, tuple) and 2 <= len(slider) <= 3:
        low, high, step = (*slider, 1)[:3]
        if not all(isinstance(number, Integral) for number in (low, high, step)):
            raise ValueError(f"The slider {name} = {slider} is a range, of whole numbers: list others, as [0.5, 1].")
        if low > high or step < 1:
            raise ValueError(f"The slider {name} = {slider} holds no value: write (low, high), or (low, high, step).")
        return list(range(low, high + 1, step))
    if isinstance(slider, list | range) and len(slider):
        return list(slider)
    raise ValueError(f"A slider takes a range (low, high) or (low, high, step), or a list of values, not {slider!r}.")


def _start_positions(kernel, choices):
    """Return the positions of the kernel's own constants; other sliders start in the middle."""
    function = getattr(kernel, "py_func", kernel)
    kernel_constants = names_used_by(function) if inspect.isfunction(function) else {}
    positions = {}
    for name, values in choices.items():
        value = kernel_constants.get(name)
        is_listed = isinstance(value, int | float) and value in values
        positions[name] = values.index(value) if is_listed else len(values) // 2
    return positions


def _code(kernel):
    """Return what a kernel's source was compiled to, which is equal where a cell runs again unchanged."""
    return getattr(getattr(kernel, "py_func", kernel), "__code__", None)


def _newest_kernel(kernel, name):
    """Return the kernel of that name in the notebook, if there is one."""
    shell = notebook_shell()
    found = shell.user_ns.get(name) if shell else None
    return found if callable(getattr(found, "py_func", found)) else kernel


def _counters(trace):
    counted = trace.counters
    if isinstance(trace, loops.LoopTrace):
        served = {f"served by {level}": f"{count:,}" for level, count in zip(trace.levels, counted.served, strict=True)}
        misses = f"{2000 * counted.l1_misses / counted.flops:.1f}" if counted.flops else ""
        return {
            "L1 misses per 1,000 multiply-adds": misses,
            **served,
            "DRAM bytes": f"{counted.dram_bytes:,}",
            "FLOPs": f"{counted.flops:,}",
        }
    bound = time_bound(trace)
    return {
        "global loads": f"{counted.global_loads:,}",
        "sectors moved": f"{counted.global_load_sectors + counted.global_store_sectors:,}",
        "shared wavefronts": f"{counted.shared_load_wavefronts + counted.shared_store_wavefronts:,}",
        "bank conflicts": f"{counted.bank_conflicts:,}",
        "DRAM bytes": f"{counted.dram_bytes:,}",
        "FLOPs": f"{counted.flops:,}",
        "barriers": f"{counted.barriers:,}",
        "least time": f"{short_number(bound.time_ms * 1000)} µs",
        "limited by": bound.limiter,
    }


def _findings_sentence(findings, advice):
    if errors := sum(finding.severity == "error" for finding in findings):
        return f"**{count_text(errors, 'error')} found.**"
    if not advice:
        return "no errors."
    return f"no errors, {count_text(len(findings), 'piece') + ' of' if findings else 'no'} advice."
