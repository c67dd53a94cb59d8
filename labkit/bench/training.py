"""`labkit bench training`: a small GPT and a small CNN, of labkit's layers and of torch's, and how they learn.

The GPT reads the text of this book, byte by byte, under bfloat16 autocast; the CNN tells directions of stripes, in
float32. Both begin with the same parameters and see the same batches, so that their losses differ by rounding alone,
which grows from step to step; runs of torch from other seeds say how far apart two runs may be.
"""

import math
import time

from labkit.bench import _record
from labkit.places import folder

STEPS = 300
SHOWN_EVERY = 50
SEEDS = 0, 1, 2
LENGTH, TEXTS, IMAGES, SIDE, CLASSES = 256, 32, 64, 32, 10
COLUMNS = {"model": "", "layers": "", "seed": "d", "step": "d", "loss": ".4f", "time_ms": ".2f"}


def main(record=False, out=None) -> None:
    found = _record.require_gpu("trains models")
    from labkit.nn.models import CNN, GPT, LABKIT, TORCH

    rows = []
    for name, make, batches in (("gpt", GPT, texts), ("cnn", CNN, stripes)):
        for seed in SEEDS:
            for layers, of in (("labkit", LABKIT), ("torch", TORCH)):
                losses, time_ms = train(make, of, batches, seed, name == "gpt")
                of_run = {"operation": "training", "model": name, "layers": layers, "seed": seed, "time_ms": time_ms}
                shown = [step for step in range(STEPS) if (step + 1) % SHOWN_EVERY == 0 or step == 0]
                rows += [{**of_run, "step": step + 1, "loss": losses[step]} for step in shown]
    _record.show(f"Losses on {found.name}", rows, COLUMNS)
    _record.finish("training", rows, found.name, record, out)


def train(make, layers, batches, seed: int, autocast: bool) -> tuple[list[float], float]:
    """The loss of each step, and milliseconds of one, the first ones left out."""
    import torch

    torch.manual_seed(seed)
    model = make(layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    losses, begin_s = [], 0.0
    for step, (x, y) in enumerate(batches(seed)):
        if step == STEPS // 2:
            torch.cuda.synchronize()
            begin_s = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            answer = model(x)
        loss = torch.nn.functional.cross_entropy(answer.float().flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    torch.cuda.synchronize()
    time_ms = (time.perf_counter() - begin_s) / (STEPS - STEPS // 2) * 1e3
    return [float(loss) for loss in losses], time_ms


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
