"""The book's machinery: notebooks from their sources, a learner's workspace, kernels shown as they stand."""

from labkit.book.show import show

__all__ = ["show"]
