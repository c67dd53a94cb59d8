"""The layers of `labkit.nn` are torch's: results, gradients, buffers, and what the compiler sees."""

from functools import partial

import pytest

pytestmark = [pytest.mark.needs("torch"), pytest.mark.filterwarnings("ignore:labkit.nn computes tensors of the host")]

torch = pytest.importorskip("torch")

from labkit import cuda, nn, norm  # noqa: E402
from labkit.nn import operators  # noqa: E402

from .held import BACKEND, assert_close, assert_compiled, assert_layers_alike, weights_of  # noqa: E402

FLOAT32, FLOAT16, BFLOAT16 = torch.float32, torch.float16, torch.bfloat16
CASES = {
    "linear": ("Linear", (16, 24), {}, (3, 5, 16), (FLOAT32, FLOAT16, BFLOAT16)),
    "linear without bias": ("Linear", (16, 8), {"bias": False}, (7, 16), (FLOAT32,)),
    "linear of a vector": ("Linear", (16, 8), {}, (16,), (FLOAT32,)),
    "linear of no rows": ("Linear", (16, 8), {}, (0, 16), (FLOAT32,)),
    "convolution of no images": ("Conv2d", (2, 4, 3), {}, (0, 2, 6, 7), (FLOAT32, BFLOAT16)),
    "convolution": ("Conv2d", (3, 8, 3), {"padding": 1}, (2, 3, 9, 10), (FLOAT32, BFLOAT16)),
    "strides and holes": (
        "Conv2d",
        (4, 6, (3, 2)),
        {"stride": (2, 1), "dilation": (1, 2), "padding": (1, 0), "bias": False},
        (2, 4, 9, 8),
        (FLOAT32,),
    ),
    "groups": ("Conv2d", (4, 8, 3), {"groups": 2, "padding": "same"}, (1, 4, 6, 7), (FLOAT32, BFLOAT16, FLOAT16)),
    "a filter for each channel": ("Conv2d", (8, 8, 3), {"groups": 8, "padding": 1}, (1, 8, 6, 6), (BFLOAT16,)),
    "an even filter": ("Conv2d", (2, 4, (2, 4)), {"padding": "same"}, (1, 2, 6, 7), (FLOAT32,)),
    "zeros alone": ("Conv2d", (3, 4, (1, 2)), {"padding": (1, 2), "stride": 2}, (1, 3, 6, 6), (FLOAT32, BFLOAT16)),
    "no zeros around": ("Conv2d", (2, 4, 3), {"padding": "valid"}, (1, 2, 6, 7), (FLOAT32,)),
    "reflected edges": ("Conv2d", (2, 4, 3), {"padding": 1, "padding_mode": "reflect"}, (1, 2, 6, 7), (FLOAT32,)),
    "a single image": ("Conv2d", (2, 4, 3), {}, (2, 6, 7), (FLOAT32,)),
    "batch norm": ("BatchNorm2d", (5,), {}, (3, 5, 6, 7), (FLOAT32, BFLOAT16, FLOAT16)),
    "batch norm that never moves": ("BatchNorm2d", (5,), {"momentum": 0.0}, (3, 5, 6, 7), (FLOAT32,)),
    "batch norm of the last batch": ("BatchNorm2d", (5,), {"momentum": 1.0}, (3, 5, 6, 7), (FLOAT32,)),
    "batch norm, plain": ("BatchNorm2d", (5,), {"affine": False}, (3, 5, 6, 7), (FLOAT32,)),
    "batch norm of all batches": ("BatchNorm2d", (5,), {"momentum": None}, (3, 5, 6, 7), (FLOAT32,)),
    "batch norm that keeps nothing": ("BatchNorm2d", (5,), {"track_running_stats": False}, (3, 5, 4, 4), (FLOAT32,)),
    "layer norm": ("LayerNorm", (48,), {}, (2, 5, 48), (FLOAT32, BFLOAT16, FLOAT16)),
    "layer norm of two axes": ("LayerNorm", ((4, 6),), {"bias": False}, (3, 4, 6), (FLOAT32,)),
    "layer norm, plain": ("LayerNorm", (48,), {"elementwise_affine": False}, (5, 48), (FLOAT32,)),
    "rms norm": ("RMSNorm", (48,), {"eps": 1e-6}, (2, 5, 48), (FLOAT32, BFLOAT16, FLOAT16)),
    "rms norm, plain": ("RMSNorm", (48,), {"elementwise_affine": False}, (5, 48), (FLOAT32,)),
    "rms norm of two axes": ("RMSNorm", ((4, 6),), {}, (3, 4, 6), (FLOAT32,)),
}
ALL = {f"{name}, {str(dtype)[6:]}": (*case, dtype) for name, (*case, dtypes) in CASES.items() for dtype in dtypes}
IN_FLOAT32 = "BatchNorm2d", "LayerNorm", "RMSNorm"  # whose parameters stay so, beside any images and rows


def made(kind, arguments, options, shape, dtype):
    """Ours, torch's with random parameters, and an input."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, kind)(*arguments, **options)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, 0.3)
    ours = getattr(nn, kind)(*arguments, **options)
    if kind not in IN_FLOAT32:
        ours, theirs = ours.to(dtype), theirs.to(dtype)
    return ours, theirs, (torch.randn(shape) + 0.5).to(dtype)


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
@pytest.mark.sample(20)
def test_a_layer_is_torchs(case):
    assert_layers_alike(*made(*case))


@pytest.mark.parametrize("name", ["batch norm", "batch norm, plain"])
def test_in_inference_too(name):
    *case, _ = CASES[name]
    ours, theirs, x = made(*case, FLOAT32)
    for step in range(2):
        theirs(x * (step + 1))
    assert_layers_alike(ours.eval(), theirs.eval(), x)


@pytest.mark.parametrize("dtype", [FLOAT32, BFLOAT16], ids=str)
def test_gradients_of_inference_are_of_the_statistics_that_it_took(dtype):
    """Also if training has moved them since. (torch's own takes the moved ones, without a word.)"""
    ours, _, x = made(*CASES["batch norm"][:-1], dtype)
    ours(x)
    y = ours.eval()(x.requires_grad_())
    wanted = x, ours.weight, ours.bias
    right = torch.autograd.grad(y, wanted, weights_of(y), retain_graph=True)
    ours.train()(3 * x.detach() + 1)
    for result, expected in zip(torch.autograd.grad(y, wanted, weights_of(y)), right, strict=True):
        assert torch.equal(result, expected)


@pytest.mark.parametrize("frozen", ["parameters", "input"])
@pytest.mark.parametrize("name", ["linear", "convolution", "batch norm", "layer norm", "rms norm"])
def test_gradients_are_of_what_is_asked_for(name, frozen):
    ours, theirs, x = made(*CASES[name][:-1], FLOAT32)
    ours.load_state_dict(theirs.state_dict())
    found = []
    for layer in (ours, theirs):
        x_ = x.clone().requires_grad_(frozen == "parameters")
        layer.requires_grad_(frozen == "input")(x_).pow(3).sum().backward()
        found.append([X.grad for X in (x_, *layer.parameters())])
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


@pytest.mark.parametrize("name", ["batch norm", "layer norm", "rms norm"])
def test_norms_take_parameters_of_16_bits(name):
    ours, theirs, x = made(*CASES[name][:-1], BFLOAT16)
    rounded = {key: parameter.detach().bfloat16() for key, parameter in theirs.named_parameters()}
    for layer in (ours, theirs):
        for key, parameter in layer.named_parameters():
            parameter.data = rounded[key].clone()
    y, right = ours(x), theirs.double()(x.double())
    assert_close(y, right, 3.2e-2, name)
    y.sum().backward()
    assert all(parameter.grad.dtype == BFLOAT16 for parameter in ours.parameters())


@pytest.mark.parametrize("name", ["layer norm, plain", "rms norm, plain"])
def test_norms_do_not_ask_for_the_default_type(name):
    ours, _, x = made(*CASES[name][:-1], FLOAT32)
    right = ours(x)
    torch.set_default_dtype(torch.float64)
    try:
        torch.testing.assert_close(ours(x), right)
    finally:
        torch.set_default_dtype(FLOAT32)


def test_batch_norm_keeps_statistics_that_are_not_tracked():
    ours, theirs, x = made(*CASES["batch norm"][:-1], FLOAT32)
    ours.track_running_stats = theirs.track_running_stats = False
    assert_layers_alike(ours, theirs, x)


def test_batch_norm_that_counts_no_batches_moves_nothing():
    ours, theirs, x = made(*CASES["batch norm of all batches"][:-1], FLOAT32)
    ours.num_batches_tracked = theirs.num_batches_tracked = None
    assert_layers_alike(ours, theirs, x)


def test_batch_norm_without_one_of_its_statistics_is_refused_in_a_sentence():
    layer = nn.BatchNorm2d(3)
    layer.running_mean = None
    with pytest.raises(ValueError, match="only one of running_mean and running_var is there: keep both, or set both"):
        layer(torch.randn(2, 3, 4, 4))


@pytest.mark.parametrize("name", ["linear", "convolution", "batch norm", "layer norm", "rms norm"])
def test_an_array_is_refused_in_a_sentence(name):
    ours, _, x = made(*CASES[name][:-1], FLOAT32)
    with pytest.raises(TypeError, match="input is a ndarray, not a tensor: make it one with torch.from_numpy"):
        ours(x.cpu().numpy())


def test_rms_norm_of_itself_adds_the_step_of_float32_to_small_rows():
    """Whatever type the rows have: so torch computes, which names that of the rows."""
    x = (torch.randn(3, 48) * 1e-2).bfloat16()
    torch.testing.assert_close(nn.RMSNorm(48)(x), torch.nn.RMSNorm(48)(x.float()).bfloat16())


def test_rms_norm_may_add_nothing_to_small_rows():
    x = torch.randn(3, 48) * 1e-5
    torch.testing.assert_close(nn.RMSNorm(48, eps=0.0)(x), torch.nn.RMSNorm(48, eps=0.0)(x))


@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_may_be_taken_away_from_batch_norm(training):
    ours, theirs, x = made(*CASES["batch norm"][:-1], FLOAT32)
    for layer in (ours, theirs):
        layer.running_mean = layer.running_var = None
        layer.num_batches_tracked = None
    assert_layers_alike(ours.train(training), theirs.train(training), x)


@pytest.mark.parametrize("name", ["convolution, float32", "convolution, bfloat16", "batch norm, float32"])
def test_what_comes_in_channels_last_goes_out_so(name):
    ours, theirs, x = made(*ALL[name])
    x = x.contiguous(memory_format=torch.channels_last)
    assert_layers_alike(ours, theirs, x)
    assert ours(x).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("case", [case for name, case in ALL.items() if name.endswith("float32")][::2], ids=str)
@pytest.mark.sample(7)
def test_the_compiler_keeps_a_layer_whole(case):
    ours, _, x = made(*case)
    assert_compiled(lambda x: ours(x) * 2, x.requires_grad_())


def test_the_compiler_keeps_a_layer_whole_beside_calls_that_it_leaves_alone():
    x, layer = torch.randn(2, 8), nn.LayerNorm(8)
    torch._dynamo.reset()
    around = torch.compile(lambda x: norm.layer_norm(x * 2) + 1, backend=BACKEND)
    torch.testing.assert_close(around(x), norm.layer_norm(x * 2) + 1)
    assert_compiled(lambda x: layer(x) * 2, x.requires_grad_())


def test_the_operators_are_what_torch_wants_of_operators():
    x, w = torch.randn(2, 3, 5, 5, requires_grad=True), torch.randn(4, 3, 3, 3, requires_grad=True)
    torch.library.opcheck(torch.ops.labkit.convolution, (x, w, [1, 1], [1, 1, 1, 1], [1, 1], 1))
    a, b = torch.randn(3, 5, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    torch.library.opcheck(torch.ops.labkit.product, (a, b, torch.randn(4, requires_grad=True), False, True))
    ones, channels = torch.ones(5), torch.ones(3)
    torch.library.opcheck(torch.ops.labkit.layer_norm, (a, ones, ones, 1e-5))
    torch.library.opcheck(torch.ops.labkit.rms_norm, (a, ones, 1e-5))
    torch.library.opcheck(torch.ops.labkit.batch_norm, (x, channels, channels, 1e-5))
    torch.library.opcheck(torch.ops.labkit.batch_norm_inference, (x, None, None, channels, channels, 1e-5))


@pytest.mark.parametrize("name", ["convolution", "batch norm", "layer norm", "rms norm"])
def test_a_second_derivative_is_refused_in_a_sentence(name):
    *case, _ = CASES[name]
    ours, _, x = made(*case, FLOAT32)
    x.requires_grad_()
    (dx,) = torch.autograd.grad(ours(x).square().sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="has no second derivative in labkit"):
        dx.sum().backward()


@pytest.mark.parametrize("first", ["input", "weight"])
def test_a_product_has_a_second_derivative(first):
    ours, theirs, x = made(*CASES["linear"][:-1], FLOAT32)
    ours.load_state_dict(theirs.state_dict())
    found = []
    for layer, x_ in ((ours, x.requires_grad_()), (theirs.double(), x.detach().double().requires_grad_())):
        of = x_ if first == "input" else layer.weight
        (slope,) = torch.autograd.grad(layer(x_).pow(3).sum(), of, create_graph=True)
        (slope * weights_of(slope)).sum().backward()
        found.append((x_.grad, layer.weight.grad))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, 1e-5, "second derivative")


MISSHAPEN = {
    "fewer features": ("Linear", (4, 8), (2, 2), r"input is 2 x 2: give it 4 features along its last axis"),
    "a number": ("Linear", (1, 8), (), r"input is a number: give it 1 feature along its last axis"),
    "rows of twice the length": ("LayerNorm", (6,), (3, 12), r"input is 3 x 12, but its last axes are to be 6"),
    "rows of half the length": ("RMSNorm", (6,), (4, 3), r"input is 4 x 3, but its last axes are to be 6"),
    "as many numbers in other axes": ("LayerNorm", ((2, 3),), (4, 3, 2), "4 x 3 x 2, but its last axes are to be 2 x"),
    "a plane": ("Conv2d", (2, 4, 3), (5, 5), "input is 5 x 5: give it the axes N, C, H and W, or C, H and W"),
    "another channel": (
        "BatchNorm2d",
        (3,),
        (2, 4, 3, 3),
        "input is 2 x 4 x 3 x 3: give it 3 channels along its second",
    ),
    "filters larger than images": ("Conv2d", (2, 4, 5), (1, 2, 3, 3), "the filter of 5 x 5 taps does not fit"),
}


@pytest.mark.parametrize(("kind", "arguments", "shape", "why"), MISSHAPEN.values(), ids=MISSHAPEN)
def test_an_input_of_another_shape_is_refused_in_a_sentence(kind, arguments, shape, why):
    with pytest.raises(ValueError, match=why):
        getattr(nn, kind)(*arguments)(torch.randn(shape))


def test_what_kernels_do_not_compute_is_refused_by_them():
    with pytest.raises(TypeError, match="is float64, which no kernel takes: convert"):
        nn.Linear(8, 8).double()(torch.ones(2, 8, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16], ids=str)
def test_autocast_chooses_the_type_of_products(device, dtype):
    layer, image, norm = nn.Linear(8, 8), nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)
    with torch.autocast(device, dtype):
        assert layer(torch.randn(2, 8)).dtype == norm(image(torch.randn(1, 2, 5, 5))).dtype == dtype


def test_tensors_of_two_devices_are_refused_in_a_sentence():
    here, elsewhere = (torch.ones(2, device=device) for device in ("cpu", "meta"))
    with pytest.raises(ValueError, match="x is on cpu and weight on meta: move the one to the other"):
        operators.check_tensors_and_call(None, {"x": here, "bias": None, "weight": elsewhere})


@pytest.mark.parametrize("kind", ["LayerNorm", "RMSNorm"])
def test_norms_have_the_type_of_torchs_under_autocast(kind, device):
    """On a GPU those of layer norm become float32 there, and those of RMS norm do not."""
    ours, theirs, x = getattr(nn, kind)(8), getattr(torch.nn, kind)(8), torch.randn(2, 8).bfloat16()
    with torch.autocast(device, torch.bfloat16):
        assert ours(x).dtype == theirs(x).dtype


@pytest.mark.parametrize("name", ["float64", "int32", "bool"])
def test_autocast_leaves_other_types_to_be_refused(device, name):
    with torch.autocast(device, torch.bfloat16), pytest.raises(TypeError, match=f"is {name}, which no kernel takes"):
        nn.Linear(8, 8)(torch.ones(2, 8, dtype=getattr(torch, name)))


@pytest.mark.parametrize("name", ["linear", "convolution", "layer norm", "rms norm", "batch norm"])
def test_shapes_are_told_without_memory(name):
    kind, arguments, options, shape, _ = CASES[name]
    ours, theirs = (getattr(of, kind)(*arguments, **options, device="meta") for of in (nn, torch.nn))
    x = torch.empty(shape, device="meta")
    assert ours(x).shape == theirs(x).shape


@pytest.mark.skipif(cuda.on_gpu(), reason="tensors of the host are taken to the GPU")
def test_tensors_of_the_host_are_told_of_the_simulator():
    operators._warn_of_simulator.cache_clear()
    with pytest.warns(UserWarning, match=r"in the simulator, thread by thread, .*: move model and data to a GPU"):
        nn.Linear(8, 8)(torch.randn(2, 8))


def test_tensors_of_two_types_are_refused_in_a_sentence():
    with pytest.raises(TypeError, match="tensors are bfloat16 and float32: convert the input or the layer"):
        nn.Linear(8, 4)(torch.zeros(2, 8, dtype=torch.bfloat16))


@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_a_convolution_in_16_bits_are_computed_in_their_own_type(groups, monkeypatch):
    """On Hopper, which the simulator is; grouped ones, for which there are no kernels, in float32."""
    from labkit import conv

    types = []

    def call(real, **options):
        types.append(options["y"].dtype)
        return real(**options)

    for name in ("backward_data", "backward_filter"):
        monkeypatch.setattr(conv, name, partial(call, getattr(conv, name)))
    layer = nn.Conv2d(8, 16, 3, padding=1, groups=groups, bias=False).bfloat16()
    x = torch.randn(1, 8, 4, 5).bfloat16().to(memory_format=torch.channels_last).requires_grad_()
    layer(x).float().sum().backward()
    assert types == [torch.float32 if groups > 1 else torch.bfloat16] * 2
    assert x.grad.dtype == layer.weight.grad.dtype == torch.bfloat16
