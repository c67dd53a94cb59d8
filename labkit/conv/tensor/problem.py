"""Convolutions of images with channels last."""

from dataclasses import dataclass

from labkit.conv.problem import Forward, Layout


@dataclass(frozen=True)
class ForwardNHWC(Forward):
    """The outputs y of images x and filters w, with channels last by default."""

    layout: Layout = "NHWC"
