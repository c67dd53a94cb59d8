"""`labkit bench training`: losses and times of small GPTs and a small CNN, of labkit's layers and of torch's.

The GPTs read the text of this book, byte by byte, under bfloat16 autocast; the CNN tells directions of stripes, in
float32. Both kinds of layers begin with the same parameters and see the same batches, so that losses differ by rounding
alone, which grows from step to step; runs from other seeds say how far apart two runs may be.

A step runs in three ways: eagerly, launch by launch; by `torch.compile`; and as a CUDA graph, which captures all of its
launches once.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from labkit.bench import _record
from labkit.places import folder

EAGER, COMPILED, CAPTURED = "launch by launch", "torch.compile", "CUDA graph"
WARM_UP = 10  # steps, in which kernels are compiled, and buffers of the optimizer made
SHOWN_EVERY = 50
IMAGES, SIDE, CLASSES = 64, 32, 10
COLUMNS = {"model": "", "layers": "", "how": "", "seed": "d", "step": "d", "loss": ".4f", "time_ms": ".2f"}


@dataclass(frozen=True)
class Training:
    """A model, its batches, and how it is trained."""

    model: str  # of `labkit.nn.models`
    batches: Callable[[int, int], Iterator]  # from a seed and the number of batches
    autocast: bool
    options: dict = field(default_factory=dict)
    steps: int = 300
    seeds: tuple[int, ...] = (0, 1, 2)
    modes: tuple[str, ...] = (EAGER, CAPTURED)


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("trains models")
    from labkit.nn.models import LABKIT, TORCH

    rows = []
    for name, training in TRAININGS.items():
        for seed in training.seeds:
            for mode in training.modes:
                for layers, layer_classes in (("labkit", LABKIT), ("torch", TORCH)):
                    losses, time_ms = train(training, layer_classes, seed, mode)
                    run = {"operation": "training", "model": name, "layers": layers, "how": mode, "seed": seed}
                    numbers = [n for n in losses if n % SHOWN_EVERY == 0 or n in (1, training.steps)]
                    rows += [{**run, "step": n, "loss": float(losses[n]), "time_ms": time_ms} for n in numbers]
    _record.print_table(f"Training on {gpu.name}", rows, COLUMNS)
    _record.store_if_requested("training", rows, gpu.name, record, out)


def train(training: Training, layers, seed: int, mode: str) -> tuple[dict, float]:
    """Train a new model; returns the loss of each step by its number, and the time of a step in ms."""
    import torch

    step, losses = _step(training, layers, seed, mode), {}
    numbered = enumerate(training.batches(seed, training.steps), 1)
    side_stream = torch.cuda.Stream()  # where torch wants what comes before a capture to run
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for number, batch in numbered:
            losses[number] = step(*batch)
            if number == WARM_UP:
                break
    torch.cuda.current_stream().wait_stream(side_stream)
    timed_step = capture_step(step, *batch) if mode == CAPTURED else step
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    for number, batch in numbered:
        losses[number] = timed_step(*batch)
    torch.cuda.synchronize()
    return losses, (time.perf_counter() - start_s) / (training.steps - WARM_UP) * 1e3


def capture_step(step, x, y):
    """Capture the step as a CUDA graph, for batches shaped like x and y. (PyTorch documentation, "CUDA Graphs".)

    Keep the step: a graph has the addresses of its parameters, and does not keep them.
    """
    import torch

    x, y, graph = x.clone(), y.clone(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(x, y)

    def replay(*batch):
        for captured, X in zip((x, y), batch, strict=True):
            captured.copy_(X)
        graph.replay()
        return loss.clone()

    return replay


def _step(training, layers, seed, mode):
    """Return a training step of a new model: it takes a batch and returns the loss before the step."""
    import torch

    from labkit.nn import models

    torch.manual_seed(seed)
    model = getattr(models, training.model)(layers, **training.options).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, capturable=mode == CAPTURED)
    forward = torch.compile(model) if mode == COMPILED else model

    def step(x, y):
        with torch.autocast("cuda", torch.bfloat16, enabled=training.autocast, cache_enabled=mode != CAPTURED):
            answer = forward(x)
        loss = torch.nn.functional.cross_entropy(answer.float().flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def book_batches(length: int, count: int):
    """Return batches of `count` pieces of the book's chapters, with their next bytes as labels."""

    def batches(seed, steps):
        import torch

        book = b"".join(path.read_bytes() for path in sorted((folder("notebooks") / "source").glob("*.md")))
        text = torch.frombuffer(bytearray(book), dtype=torch.uint8).long().cuda()
        random = torch.Generator().manual_seed(seed)
        for _ in range(steps):
            begins = torch.randint(len(text) - length - 1, (count, 1), generator=random)
            indices = (begins + torch.arange(length)).cuda()
            yield text[indices], text[indices + 1]

    return batches


def stripe_batches(seed: int, steps: int):
    """Yield batches of noisy images of stripes, with their directions as labels."""
    import torch

    random = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    for _ in range(steps):
        labels = torch.randint(CLASSES, (IMAGES,), generator=random)
        angle = (labels * math.pi / CLASSES)[:, None, None]
        phase = torch.rand(IMAGES, 1, 1, generator=random) * 2 * math.pi
        waves = torch.sin((x * torch.cos(angle) + y * torch.sin(angle)) * 0.8 + phase)
        images = waves[:, None] + torch.randn(IMAGES, 3, SIDE, SIDE, generator=random)
        yield images.cuda(), labels.cuda()


LARGE = {"length": 2048, "width": 2048, "heads": 16}
LARGE_RUN = {"steps": 50, "seeds": (0,), "modes": (EAGER, COMPILED, CAPTURED)}
TRAININGS = {
    "gpt": Training("GPT", book_batches(length=256, count=32), autocast=True),
    "cnn": Training("CNN", stripe_batches, autocast=False),
    "large gpt": Training("GPT", book_batches(length=2048, count=8), autocast=True, options=LARGE, **LARGE_RUN),
}
