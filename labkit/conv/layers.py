"""Layers on which convolutions are measured, as (C, H, W, K, R, S), and problems of them.

TABLE_2 is from the cuDNN paper (Chetlur and others, 2014). VGG_16 and RESNET_50_* are the distinct layers of these
networks with a stride of 1. (Simonyan and Zisserman, 2014; He and others, 2015.)
"""

TABLE_2 = (
    (3, 128, 128, 96, 11, 11),
    (64, 64, 64, 128, 9, 9),
    (128, 32, 32, 128, 9, 9),
    (128, 16, 16, 128, 7, 7),
    (384, 13, 13, 384, 3, 3),
)
VGG_16 = tuple(
    (C, size, size, K, 3, 3)
    for C, K, size in (
        (64, 64, 224),
        (64, 128, 112),
        (128, 128, 112),
        (128, 256, 56),
        (256, 256, 56),
        (256, 512, 28),
        (512, 512, 28),
        (512, 512, 14),
    )
)
RESNET_50_3X3 = tuple((C, size, size, C, 3, 3) for C, size in ((64, 56), (128, 28), (256, 14), (512, 7)))
RESNET_50_1X1 = tuple(
    (C, size, size, K, 1, 1)
    for C, K, size in (
        (64, 256, 56),
        (256, 64, 56),
        (128, 512, 28),
        (512, 128, 28),
        (256, 1024, 14),
        (1024, 256, 14),
        (512, 2048, 7),
        (2048, 512, 7),
    )
)


def batched(N: int, layers: tuple[tuple[int, ...], ...], pad: int = 0) -> tuple[tuple[int, ...], ...]:
    """Return sizes of problems with N images, a stride of 1, and `pad` zeros on each side."""
    return tuple((N, *layer, 1, 1, pad, pad, pad, pad) for layer in layers)  # strides, and zeros on four sides
