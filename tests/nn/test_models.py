"""The small models compute and learn the same of labkit's layers as of torch's, and compile whole."""

import pytest

pytestmark = [pytest.mark.needs("torch"), pytest.mark.filterwarnings("ignore:labkit.nn computes tensors of the host")]

torch = pytest.importorskip("torch")

from labkit.nn.models import CNN, GPT, LABKIT, TORCH  # noqa: E402

from .held import BACKEND  # noqa: E402

STEPS = 3


def tiny_gpt(layers):
    return GPT(layers, tokens=16, length=12, width=16, heads=2, depth=1)


def tiny_cnn(layers):
    return CNN(layers, classes=3, channels=4)


CASES = {"gpt": (tiny_gpt, lambda: torch.randint(16, (2, 12))), "cnn": (tiny_cnn, lambda: torch.randn(2, 3, 8, 8))}


def losses(make, layers, batch):
    torch.manual_seed(0)
    model = make(layers)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    found = []
    for _ in range(STEPS):
        torch.manual_seed(1)
        answer = model(batch()).flatten(0, -2)
        loss = torch.nn.functional.cross_entropy(answer, torch.arange(len(answer)) % answer.shape[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


@pytest.mark.parametrize(("make", "batch"), CASES.values(), ids=CASES)
def test_a_model_learns_the_same_of_labkits_layers_as_of_torchs(make, batch):
    result, right = (losses(make, layers, batch) for layers in (LABKIT, TORCH))
    assert right[-1] < right[0]
    assert result == pytest.approx(right, rel=1e-4)


@pytest.mark.parametrize(("make", "batch"), CASES.values(), ids=CASES)
def test_the_compiler_keeps_a_model_whole(make, batch):
    torch._dynamo.reset()
    model, x = make(LABKIT), batch()
    compiled = torch.compile(model, fullgraph=True, backend=BACKEND)
    torch.testing.assert_close(compiled(x), model(x))
    compiled(x).sum().backward()


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(("make", "batch"), CASES.values(), ids=CASES)
def test_a_captured_step_learns_what_steps_one_by_one_do(make, batch):
    """Also where the optimizer moved parameters since: a graph reads where they lie."""

    def trained(replayed):
        torch.manual_seed(0)
        model, x = make(LABKIT), batch()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step():
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        aside = torch.cuda.Stream()
        with torch.cuda.stream(aside):
            for _ in range(STEPS):
                step()
        torch.cuda.synchronize()
        if replayed:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
        for _ in range(STEPS):
            graph.replay() if replayed else step()
        torch.cuda.synchronize()
        return list(model.parameters())

    for result, right in zip(trained(True), trained(False), strict=True):
        torch.testing.assert_close(result, right)
