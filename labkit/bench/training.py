"""`labkit bench training`: a small GPT and a small CNN, of labkit's layers and of torch's, and how they learn.

The GPT reads the text of this book, byte by byte, under bfloat16 autocast; the CNN tells directions of stripes, in
float32. Both begin with the same parameters and see the same batches, so that their losses differ by rounding alone,
which grows from step to step; runs of torch from other seeds say how far apart two runs may be. Each training is done
twice: as Python asks for one launch after the other, and with a step captured in a CUDA graph, which is replayed.
"""

import math
import time

from labkit.bench import _record
from labkit.places import folder

STEPS = 300
BEFORE_CAPTURE = 10  # in which kernels are compiled, and buffers of the optimizer made
SHOWN_EVERY = 50
SEEDS = 0, 1, 2
LENGTH, TEXTS, IMAGES, SIDE, CLASSES = 256, 32, 64, 32, 10
COLUMNS = {"model": "", "layers": "", "seed": "d", "step": "d", "loss": ".4f", "time_ms": ".2f"}
COLUMNS |= {"captured_loss": ".4f", "captured_ms": ".2f"}


def main(record=False, out=None) -> None:
    found = _record.require_gpu("trains models")
    from labkit.nn.models import CNN, GPT, LABKIT, TORCH

    rows = []
    for name, make, batches in (("gpt", GPT, texts), ("cnn", CNN, stripes)):
        for seed in SEEDS:
            for layers, of in (("labkit", LABKIT), ("torch", TORCH)):
                options = make, of, batches, seed, name == "gpt"
                losses, time_ms = train(*options)
                captured_loss, captured_ms = train_captured(*options)
                of_run = {"operation": "training", "model": name, "layers": layers, "seed": seed, "time_ms": time_ms}
                of_run |= {"captured_loss": captured_loss, "captured_ms": captured_ms}
                shown = [step for step in range(STEPS) if (step + 1) % SHOWN_EVERY == 0 or step == 0]
                rows += [{**of_run, "step": step + 1, "loss": losses[step]} for step in shown]
    _record.show(f"Losses on {found.name}", rows, COLUMNS)
    _record.finish("training", rows, found.name, record, out)


def train(make, layers, batches, seed: int, autocast: bool) -> tuple[list[float], float]:
    """The loss of each step, and milliseconds of one, the first ones left out."""
    import torch

    step = _training(make, layers, seed, autocast)
    losses, begin_s = [], 0.0
    for number, (x, y) in enumerate(batches(seed)):
        if number == STEPS // 2:
            torch.cuda.synchronize()
            begin_s = time.perf_counter()
        losses.append(step(x, y))
    torch.cuda.synchronize()
    time_ms = (time.perf_counter() - begin_s) / (STEPS - STEPS // 2) * 1e3
    return [float(loss) for loss in losses], time_ms


def train_captured(make, layers, batches, seed: int, autocast: bool) -> tuple[float, float]:
    """The last loss, and milliseconds of a step, where each step replays one CUDA graph of all that it launches.

    (PyTorch documentation, "CUDA Graphs", whole-network capture.)
    """
    import torch

    step = _training(make, layers, seed, autocast, capturable=True)
    of_steps = list(batches(seed))
    x, y = (X.clone() for X in of_steps[0])
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for begin in of_steps[:BEFORE_CAPTURE]:
            step(*begin)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(x, y)
    torch.cuda.synchronize()
    begin_s = time.perf_counter()
    for batch in of_steps[BEFORE_CAPTURE:]:
        for place, X in zip((x, y), batch, strict=True):
            place.copy_(X)
        graph.replay()
    torch.cuda.synchronize()
    return float(loss), (time.perf_counter() - begin_s) / (STEPS - BEFORE_CAPTURE) * 1e3


def _training(make, layers, seed, autocast, capturable=False):
    """A step of the training of a new model: takes a batch, gives the loss before the step."""
    import torch

    torch.manual_seed(seed)
    model = make(layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, capturable=capturable)

    def step(x, y):
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast, cache_enabled=not capturable):
            answer = model(x)
        loss = torch.nn.functional.cross_entropy(answer.float().flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def texts(seed: int):
    """Batches of pieces of the book's chapters, and of their next bytes."""
    import torch

    book = b"".join(path.read_bytes() for path in sorted((folder("notebooks") / "source").glob("*.md")))
    text = torch.frombuffer(bytearray(book), dtype=torch.uint8).long().cuda()
    random = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        begins = torch.randint(len(text) - LENGTH - 1, (TEXTS, 1), generator=random)
        places = (begins + torch.arange(LENGTH)).cuda()
        yield text[places], text[places + 1]


def stripes(seed: int):
    """Batches of noisy images of stripes, and which of some directions they have."""
    import torch

    random = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    for _ in range(STEPS):
        of = torch.randint(CLASSES, (IMAGES,), generator=random)
        angle = (of * math.pi / CLASSES)[:, None, None]
        begin = torch.rand(IMAGES, 1, 1, generator=random) * 2 * math.pi
        waves = torch.sin((x * torch.cos(angle) + y * torch.sin(angle)) * 0.8 + begin)
        images = waves[:, None] + torch.randn(IMAGES, 3, SIDE, SIDE, generator=random)
        yield images.cuda(), of.cuda()
