"""Threads, streams, graphs and shapes drawn at random, all at once: what comes out is what a serial run gives.

`STRESS_MINUTES=8` runs for so long (`make stress`), `make test-gpu` for half a minute.
"""

import os
import random
import time
from dataclasses import dataclass, field
from threading import Lock, Thread

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.needs("gpu", "torch"), pytest.mark.timeout(0)]

import labkit  # noqa: E402 - after torch is known to be there

from . import streams_of_torch as cases  # noqa: E402 - which needs torch

MINUTES = float(os.environ.get("STRESS_MINUTES", 0.5))
ROUND_S = 20  # after which all shapes and graphs are new
THREADS, STREAMS, GRAPHS, CALLS = 8, 4, 20, 40
FREE, CAPTURE, REPLAY = 0.005, 0.02, 0.4  # how often a thread frees, captures or replays; it calls else


@dataclass
class Known:
    """A case on inputs of its own, with the results of a serial run."""

    name: str
    case: cases.Case
    inputs: list = field(init=False)
    results: list = field(init=False)

    def __post_init__(self):
        self.inputs = list(self.case.draw())
        self.results = [X.clone() for X in cases.as_tuple(self.case.run(*self.inputs))]


class Captured:
    """A graph of a known case: `replay` tells whether its results are right."""

    def __init__(self, known: Known, stream):
        self.known, self.lock, self.graph = known, Lock(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
            self.results = cases.as_tuple(known.case.run(*known.inputs))

    def replay(self, stream) -> bool:
        with self.lock, torch.cuda.stream(stream):
            for X in self.results:
                X.fill_(torch.nan)  # what a replay does not write shows
            self.graph.replay()
            found = [X.clone() for X in self.results]
            stream.synchronize()
        return cases.equal(found, self.known.results)


def draw(rng: random.Random) -> tuple[str, cases.Case]:
    """A call of a random shape."""
    rows, columns = rng.randrange(1, 3000), 8 * rng.randrange(1, 300)
    images, channels, side = rng.randrange(1, 20), 8 * rng.randrange(1, 10), rng.randrange(5, 40)
    batch, sequence, head = rng.randrange(1, 4), rng.randrange(1, 900), rng.choice((64, 128))
    deep = 64 * rng.randrange(1, 600)
    matrix, image = (rows, columns), (images, channels, side, side)
    qkv = (batch, 4, sequence, head)
    float32 = torch.float32
    name, shapes, dtype, run = rng.choice(
        (
            ("product", ((rows, columns), (columns, rows)), float32, cases.product),
            ("16-bit product", ((8 * rows, columns), (columns, 256)), torch.bfloat16, cases.product),
            ("product cut along k", ((64, deep), (deep, 64)), float32, cases.product),
            ("convolution", (image, (16, channels, 3, 3)), float32, cases.convolution),
            ("softmax", (matrix,), float32, labkit.softmax.softmax),
            ("layer norm", (matrix,), float32, labkit.norm.layer_norm),
            ("batch norm", (image,), float32, labkit.norm.batch_norm),
            ("batch norm's gradients", (image, image), float32, cases.gradients_of_batch_norm),
            ("layouts", (image,), torch.bfloat16, lambda x: labkit.layouts.convert(x, "NCHW", "NHWC")),
            ("attention", (qkv,) * 3, torch.float16, labkit.attention.attend),
            ("attention's gradients", (qkv,) * 4, torch.bfloat16, cases.gradients_of_attention),
            ("geglu", (matrix, matrix), torch.bfloat16, labkit.elementwise.geglu),
        )
    )
    return f"{name} of {shapes}", cases.Case(cases.heads(*shapes, dtype=dtype), run)


def rounds():
    """The seed of each round and its length, for as long as was asked for."""
    end, seed = time.monotonic() + 60 * MINUTES, 0
    while (left := end - time.monotonic()) > 0:
        yield seed, min(ROUND_S, left)
        seed += 1


def one_round(seed: int, length_s: float) -> tuple[int, list[str]]:
    """How many calls and replays were made at once, and those that were wrong or raised."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    known = [Known(*draw(rng)) for _ in range(CALLS)]
    # torch's autograd works in a thread of its own for all streams: what it does is not captured beside other work
    capturable = [one for one in known if "norm's gradients" not in one.name]
    # one stream for all captures: torch has 32, and gives a 33rd caller the first again
    captured, *streams = (torch.cuda.Stream() for _ in range(1 + STREAMS))
    graphs = [Captured(rng.choice(capturable), captured) for _ in range(GRAPHS)]
    torch.cuda.synchronize()
    made, wrong, capturing = [0] * THREADS, [], Lock()
    end = time.monotonic() + length_s

    def call(one: Known, stream) -> bool:
        with torch.cuda.stream(stream):
            inputs = [torch.full_like(X, torch.nan) for X in one.inputs]
            torch.cuda._sleep(cases.SLEEP_CYCLES // 20)
            for X, Y in zip(inputs, one.inputs):
                X.copy_(Y)
            found = cases.as_tuple(one.case.run(*inputs))
            stream.synchronize()
        return cases.equal(found, one.results)

    def act(rng: random.Random) -> str | None:
        stream, kind = rng.choice(streams), rng.random()
        if kind < FREE:
            labkit.free()
        elif kind < FREE + CAPTURE:
            with capturing:
                graphs[rng.randrange(GRAPHS)] = Captured(rng.choice(capturable), captured)
        elif kind < FREE + CAPTURE + REPLAY:
            graph = rng.choice(graphs)
            if not graph.replay(stream):
                return f"a replay: {graph.known.name}"
        else:
            one = rng.choice(known)
            if not call(one, stream):
                return f"a call: {one.name}"
        return None

    def work(number: int):
        rng = random.Random(f"{seed}, {number}")
        while time.monotonic() < end:
            try:
                found = act(rng)
            except Exception as error:  # it is what the test is about: every thread's is told
                found = f"{type(error).__name__}: {error}"
            made[number] += 1
            if found:
                wrong.append(found)

    threads = [Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    return sum(made), wrong


def test_threads_streams_and_graphs_give_what_serial_runs_give():
    made, wrong = 0, []
    for seed, length_s in rounds():
        more, faults = one_round(seed, length_s)
        made += more
        wrong += [f"round {seed}, {fault}" for fault in faults]
    print(f"{made} calls and replays, {len(wrong)} wrong", *sorted(set(wrong)), sep="\n")
    assert not wrong, f"{len(wrong)} of {made}"
    assert made > THREADS * GRAPHS
