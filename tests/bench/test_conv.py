"""The bench of convolutions: a record for each ladder, and baselines where they apply."""

from labkit.bench import _cudnn, conv
from labkit.conv import Forward
from labkit.ladder import ladders


def test_each_ladder_has_a_record_of_its_own():
    names = [table.name for table in conv.TABLES]
    assert len(set(names)) == len(names) == len(ladders("conv"))
    assert all(name.startswith("conv_") for name in names)


def test_cudnn_takes_as_much_padding_on_one_side_as_on_the_other():
    assert _cudnn.supports(Forward(1, 2, 8, 8, 2, 3, 3, top=1, bottom=1))
    assert not _cudnn.supports(Forward(1, 2, 8, 8, 2, 3, 3, top=1))
    assert not _cudnn.supports(Forward(1, 2, 8, 8, 2, 3, 3, left=1, right=2))
