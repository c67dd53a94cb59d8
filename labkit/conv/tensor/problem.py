"""Convolutions of images whose channels come last."""

from dataclasses import dataclass

from labkit.conv.problem import Forward, Layout


@dataclass(frozen=True)
class ForwardNHWC(Forward):
    """The outputs y of images x and filters w, laid out with channels last if nothing else is said."""

    layout: Layout = "NHWC"
