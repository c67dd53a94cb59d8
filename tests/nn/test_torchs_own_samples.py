"""The layers of `labkit.nn` on the samples with which torch tests its own: constructors, shapes, options, edges."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs("torch"), pytest.mark.filterwarnings("ignore:labkit.nn computes tensors of the host")]

torch = pytest.importorskip("torch")

from torch.nn.functional import scaled_dot_product_attention as of_torch  # noqa: E402

from labkit import nn  # noqa: E402

from .held import assert_alike, assert_layers_alike  # noqa: E402

DTYPES = torch.float32, torch.bfloat16
FEWEST = {"BatchNorm2d": 6, "Conv2d": 4, "LayerNorm": 7, "Linear": 3, "RMSNorm": 6}  # samples that torch has


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    path = tmp_path_factory.mktemp("samples") / "samples.pt"
    subprocess.run([sys.executable, Path(__file__).with_name("torchs_samples.py"), path], check=True)
    return torch.load(path, weights_only=False)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("kind", FEWEST)
@pytest.mark.sample(4)
def test_a_layer_computes_torchs_samples(samples, kind, training, dtype):
    wanted = [sample for sample in samples[0] if (sample[0], sample[-1]) == (kind, training)]
    assert len(wanted) >= FEWEST[kind]
    for _, arguments, options, x, _ in wanted:
        ours, theirs = (getattr(of, kind)(*arguments, **options).train(training) for of in (nn, torch.nn))
        if kind in ("Conv2d", "Linear"):  # norms keep their parameters in float32
            ours, theirs = ours.to(dtype), theirs.to(dtype)
        assert_layers_alike(ours, theirs, x.to(torch.get_default_device(), dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.sample(1)
def test_attention_computes_torchs_samples_or_refuses_them_in_a_sentence(samples, dtype):
    """Their numbers are up to 9: made a tenth of that, since gradients of such scores are rounded differences."""
    computed = refused = 0
    for tensors, options in samples[1][::2]:  # two of each kind
        tensors = [X.to(torch.get_default_device(), dtype) / 10 for X in tensors]
        call = partial(nn.scaled_dot_product_attention, **options)
        if options.get("attn_mask") is not None or options["dropout_p"]:
            with pytest.raises(NotImplementedError, match="is not computed here"):
                call(*tensors)
            refused += 1
        else:
            assert_alike(call, partial(of_torch, **options), *tensors)
            computed += 1
    assert computed >= 6
    assert refused >= 7
