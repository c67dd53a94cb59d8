"""A program that saves the samples with which torch tests its own layers and attention: `torchs_samples.py FILE`.

It is one of its own because torch's test modules change settings of whatever imports them: of hypothesis, and which of
torch's flags may be set.
"""

import sys

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

KINDS = "BatchNorm2d", "Conv2d", "LayerNorm", "Linear", "RMSNorm"


def of_layers():
    """Which layer, what it is made with, its input, and whether it is in training."""
    for info in module_db:
        kind = info.name.removeprefix("nn.")
        if kind not in KINDS:
            continue
        for training in (True, False):
            options = {"device": "cpu", "dtype": torch.float32, "requires_grad": False, "training": training}
            for sample in info.module_inputs_func(info, **options):
                result, given = sample.constructor_input, sample.forward_input
                x = given.args[0] if given.args else given.kwargs["input"]
                yield kind, result.args, result.kwargs, x, training


def of_attention():
    """Query, key and value, and options."""
    (info,) = (each for each in op_db if each.name == "nn.functional.scaled_dot_product_attention")
    for sample in info.sample_inputs("cpu", torch.float32):
        yield (sample.input, *sample.args), sample.kwargs


if __name__ == "__main__":
    torch.save((list(of_layers()), list(of_attention())), sys.argv[1])
