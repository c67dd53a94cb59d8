"""What the steps of the book are built on: who published it, when, and which chapter uses it."""

from labkit.exercises.contents import book_contents
from labkit.views import Idea

# Year, authors, title, idea, kind, chapter. Where a chapter or a docstring cites a publication, its year is from there;
# for those in CONFIRMED it was looked up.
_IDEAS: list[tuple[int, str, str, str, str, str]] = [
    (1962, "Welford", "Note on a Method for Calculating Corrected Sums of Squares and Products",
     "mean and squares in one pass", "arithmetic", "batchnorm-fused"),
    (1965, "Cooley and Tukey", "An Algorithm for the Machine Calculation of Complex Fourier Series",
     "the fast Fourier transform", "arithmetic", "fft-convolution"),
    (1969, "McKellar and Coffman", "Organizing Matrices and Matrix Operations for Paged Memory Systems",
     "matrices multiplied block by block", "memory", "triple-loop"),
    (1979, "Lawson and others", "Basic Linear Algebra Subprograms for Fortran Usage",
     "BLAS, level 1", "arithmetic", "roofline"),
    (1979, "Chan, Golub and LeVeque", "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances",
     "moments of parts merged", "arithmetic", "batchnorm-fused"),
    (1980, "Winograd", "Arithmetic Complexity of Computations",
     "filters with fewer products", "arithmetic", "winograd"),
    (1990, "Dongarra and others", "A Set of Level 3 Basic Linear Algebra Subprograms",
     "BLAS, level 3", "memory", "roofline"),
    (1991, "Lam, Rothberg and Wolf", "The Cache Performance and Optimizations of Blocked Algorithms",
     "tiles that suit a cache", "memory", "triple-loop"),
    (1994, "Granlund and Montgomery", "Division by Invariant Integers using Multiplication",
     "division without a division", "arithmetic", "im2col-and-implicit-gemm"),
    (1999, "Schraudolph", "A Fast, Compact Approximation of the Exponential Function",
     "an exponential from a float's bits", "arithmetic", "decoding-and-few-bits"),
    (2006, "Chellapilla, Puri and Simard",
     "High Performance Convolutional Neural Networks for Document Processing",
     "im2col", "arithmetic", "im2col-and-implicit-gemm"),
    (2008, "Goto and van de Geijn", "Anatomy of High-Performance Matrix Multiplication",
     "a tile for each level of memory", "memory", "triple-loop"),
    (2008, "Volkov and Demmel", "Benchmarking GPUs to Tune Dense Linear Algebra",
     "register tiles on a GPU", "memory", "register-tiles"),
    (2009, "Williams, Waterman and Patterson",
     "Roofline: An Insightful Visual Performance Model for Multicore Architectures",
     "the roofline", "memory", "roofline"),
    (2009, "Ruetsch and Micikevicius", "Optimizing Matrix Transpose in CUDA",
     "a padded tile", "memory", "layouts-nhwc"),
    (2011, "Bauer, Cook and Khailany", "CudaDMA",
     "warps that only copy", "memory", "flash-attention-2-and-3"),
    (2014, "Mathieu, Henaff and LeCun", "Fast Training of Convolutional Networks through FFTs",
     "convolution by FFT in networks", "arithmetic", "fft-convolution"),
    (2014, "Chetlur and others", "cuDNN: Efficient Primitives for Deep Learning",
     "implicit GEMM", "memory", "im2col-and-implicit-gemm"),
    (2015, "Ioffe and Szegedy", "Batch Normalization", "batch norm", "arithmetic", "batchnorm-fused"),
    (2015, "Lavin and Gray", "Fast Algorithms for Convolutional Neural Networks",
     "Winograd's filters in networks", "arithmetic", "winograd"),
    (2017, "NVIDIA", "Volta (V100)", "tensor cores", "hardware", "tensor-cores"),
    (2018, "Milakov and Gimelshein", "Online normalizer calculation for softmax",
     "online softmax", "arithmetic", "attention-and-online-softmax"),
    (2020, "NVIDIA", "Ampere (A100)", "cp.async", "hardware", "feeding-tensor-cores"),
    (2021, "Rabe and Staats", "Self-attention Does Not Need O(n²) Memory",
     "attention without its matrix", "memory", "attention-and-online-softmax"),
    (2022, "Dao and others", "FlashAttention", "attention in tiles", "memory", "flash-attention"),
    (2022, "NVIDIA", "Hopper (H100)", "TMA and wgmma", "hardware", "hopper-gemm"),
    (2023, "Dao", "FlashAttention-2", "queries in the outer loop", "memory", "flash-attention"),
    (2023, "Kwon and others",
     "Efficient Memory Management for Large Language Model Serving with PagedAttention",
     "a cache in pages", "memory", "decoding-and-few-bits"),
    (2023, "Dao, Haziza, Massa and Sizov", "Flash-Decoding for long-context inference",
     "keys split among blocks", "memory", "decoding-and-few-bits"),
    (2023, "Osama and others", "Stream-K", "all tiles divided evenly", "memory", "decoding-and-few-bits"),
    (2024, "Shah and others", "FlashAttention-3", "ping-pong and overlap", "memory", "flash-attention-2-and-3"),
    (2024, "NVIDIA", "Blackwell (B200)", "tensor memory", "hardware", "flash-attention-2-and-3"),
]  # fmt: skip

CONFIRMED = {  # publications that no chapter cites with this year, and where the year is from
    "Organizing Matrices and Matrix Operations for Paged Memory Systems": "Communications of the ACM 12 (3), 1969",
    "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances": "Stanford CS-TR-79-773, 1979",
    "The Cache Performance and Optimizations of Blocked Algorithms": "ASPLOS IV, 1991, pages 63-74",
    "Benchmarking GPUs to Tune Dense Linear Algebra": "SC08, 2008",
    "Ampere (A100)": "NVIDIA, CUDA 11 and A100, 2020",
    "Hopper (H100)": "NVIDIA, GTC keynote of 22 March 2022",
    "Blackwell (B200)": "NVIDIA, GTC keynote of 18 March 2024",
}


def ideas() -> list[Idea]:
    """Return the ideas in the order of their years, with the numbers of their chapters."""
    return [Idea(*idea[:5], chapter=_number(idea[5])) for idea in _IDEAS]


def _number(slug: str) -> str:
    chapter = book_contents().chapter(slug)
    assert chapter is not None, f"{slug} is no chapter"
    return chapter.number
