"""The book's machinery: notebooks from their sources, a learner's workspace, kernels shown as they stand."""

from labkit.book.claims import claims
from labkit.book.diff import diff
from labkit.book.ideas import ideas
from labkit.book.progress import progress
from labkit.book.rungs import rungs
from labkit.book.show import show
from labkit.table import Table

# standings is a module, loaded where it is imported
__all__ = ["Table", "claims", "diff", "ideas", "progress", "rungs", "show", "standings"]
