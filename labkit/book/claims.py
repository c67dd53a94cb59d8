"""What texts on GPUs claim, with the verdict of this book: the rows of the appendix, which measures them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from labkit.exercises.contents import book_contents
from labkit.table import Table

CONFIRMED, CONDITION, NOT_CONFIRMED, NOT_COMPARABLE, OPEN = VERDICTS = (
    "confirmed",
    "confirmed with a condition",
    "not confirmed",
    "not comparable",
    "open",
)
# Working titles of chapters that are not written yet; a claim without a chapter is NOWHERE.
PLANNED = {
    "primitives": "Primitives",
    "fusing-a-network": "Fusing a network",
    "tracing-a-transformer": "Tracing a transformer",
    "training": "Training",
    "many-gpus": "Many GPUs",
}
NOWHERE = ""

_LECTURE, _CUDNN_ARTICLE, _ATTENTION_ARTICLE = "the lecture", "the cuDNN article", "the attention article"
_ARTICLES, _ONE_ARTICLE = "articles", "an article"
_CUDNN = "Chetlur and others, *cuDNN*, 2014"
_FA2, _FA3 = "Dao, *FlashAttention-2*, 2023, abstract", "Shah and others, *FlashAttention-3*, 2024, abstract"

# Part and name of each section, and its claims: name, chapter, claim, source, verdict, reason. Claimed figures stand
# here; measured ones come from the cells of the appendix.
_SECTIONS: dict[tuple[str, str], list[tuple[str, str, str, str, str, str]]] = {
    ("Matrix multiplication", "loops"): [
        ("work", "triple-loop",
         "The product of two 4096 x 4096 matrices takes 137 GFLOP", _ATTENTION_ARTICLE,
         CONFIRMED, "The count depends on nothing but the sizes."),
        ("python", "triple-loop",
         "Pure Python takes about 900 s", _ATTENTION_ARTICLE,
         NOT_CONFIRMED, "Even with lists in place of arrays, Python takes several times as long here."),
        ("blocked", "triple-loop",
         "Cache-tiled loops take 18 s", _ATTENTION_ARTICLE,
         CONDITION, "The order of magnitude holds if the loops are compiled."),
        ("numpy", "triple-loop",
         "NumPy takes 0.8 s", _ATTENTION_ARTICLE,
         CONDITION, "It holds for two cores; the claim does not name a number of cores."),
        ("cublas", "triple-loop",
         "cuBLAS takes 0.002 s", _ATTENTION_ARTICLE,
         CONDITION, "It holds if the time is rounded down."),
        ("cores", "triple-loop",
         "cuBLAS runs at 6 to 17x the speed of a CPU's BLAS", _ARTICLES,
         NOT_COMPARABLE, "The factor depends on the number of cores, which the claim does not name."),
        ("tiles", "triple-loop",
         "Tiles of 64 to 128 are best", _ATTENTION_ARTICLE,
         NOT_CONFIRMED,
         "In this order of the loops only the tile of B must stay in a cache, and L3 holds a large tile."),
    ],
    ("Matrix multiplication", "caches"): [
        ("misses", "triple-loop",
         "99% of the accesses to B miss the cache with N = 4096", _ATTENTION_ARTICLE,
         CONDITION,
         "Nearly all miss L1 with both lengths of rows, but they miss all caches only with 4,096, a power of two."),
        ("factor", "triple-loop",
         "A miss takes 60 times as long as a hit", _ATTENTION_ARTICLE,
         CONDITION, "The order of magnitude holds; the factor belongs to one machine."),
        ("dram", "triple-loop",
         "A load from the host's DRAM takes 1,000 cycles", _ATTENTION_ARTICLE,
         NOT_CONFIRMED, "This host needs less than half of that."),
        ("multiply_adds", "triple-loop",
         "Two tiles of 4 x 4 give 256 multiply-adds", _ATTENTION_ARTICLE,
         NOT_CONFIRMED, "Each of the 16 elements of A meets the 4 elements of one row of B, not all 16 elements."),
    ],
    ("Matrix multiplication", "kernels"): [
        ("pair", "first-gpu-matmul",
         "Two threads that read 16 bytes apart move 64 bytes, and a quarter is used", _LECTURE,
         NOT_CONFIRMED, "The quarter and the 64 bytes never occur together."),
        ("latency", "first-gpu-matmul",
         "A load takes 5, 30 and 300 cycles from L1, L2 and the memory of an H100", _ARTICLES,
         NOT_CONFIRMED, "The order of the levels holds, but even a hit in L1 takes dozens of cycles."),
        ("transactions", "first-gpu-matmul",
         "Memory moves in transactions of 32, 64 and 128 bytes",
         'the lecture; NVIDIA, *CUDA C++ Programming Guide*, "Device Memory Accesses"',
         CONDITION, "Requests of 96 bytes occur as well: a request moves the sectors of 32 bytes that it touches."),
        ("reuse", "tiled-gemm",
         "Tiles of 16 x 16 reduce global loads to 1/16, and the same bandwidth feeds 16 times as many operations",
         "Kirk and Hwu, *Programming Massively Parallel Processors*, on memory and tiling",
         CONDITION,
         "The loads fall to 1/16, but L1 already served most loads of the untiled kernel: L2 traffic "
         "stays, and time falls less."),
    ],
    ("Matrix multiplication", "rooflines"): [
        ("peak", "roofline",
         "An H100 has 1,979 TFLOPS in dense fp16", _ARTICLES,
         NOT_CONFIRMED,
         "NVIDIA's data sheet has the figure with the footnote \"with sparsity\": it counts products with zeros "
         "that the hardware skips."),
        ("ridge", "roofline",
         "The ridge of an H100 is at 590 FLOP/byte in fp16", _ARTICLES,
         NOT_CONFIRMED, "It follows from the peak with sparsity, and is twice the ridge of dense matrices."),
        ("intensity", "roofline",
         "A product of 4096 x 4096 matrices has an intensity of 1370 FLOP/byte in fp16", _ARTICLES,
         CONFIRMED, "FLOPs divided by the bytes of three matrices give it."),
        ("half_ms", "roofline",
         "The product of two 4096 x 4096 matrices in fp16 takes 0.5 ms at about 2000 TFLOPS", _ARTICLES,
         NOT_CONFIRMED, "Time and speed contradict each other, and our measurement gives neither."),
        ("shared", "roofline",
         "An H100's shared memory has 19 TB/s, 6 times as much as HBM", _ARTICLES,
         NOT_CONFIRMED,
         "Dao and others (*FlashAttention*, 2022, section 2.1) give this figure for an A100."),
        ("batches", "roofline",
         "A layer of 4096 x 4096 weights reaches 0.016, 0.063, 0.25, 0.98, 3.8, 14.2 and 1847 TFLOPS in fp16 "
         "with batches of 1, 4, 16, 64, 256, 1024 and 4096",
         _ARTICLES,
         NOT_CONFIRMED,
         "The shape holds up to 256 inputs, but each figure differs from ours, and the last exceeds an H100's "
         "dense peak."),
    ],
    ("Matrix multiplication", "shares"): [
        ("most", "roofline",
         "More than 80% of the work of deep learning is matrix products", _ARTICLES,
         CONDITION, "It holds for the FLOPs of GPT-3; shares of time were not measured."),
        ("half", "roofline",
         "Half of a language model is matrix products", _ARTICLES,
         NOT_CONFIRMED, "As a share of FLOPs it is far too low."),
        ("gpt3", "roofline",
         "95% of GPT-3's FLOPs are matrix products", _ARTICLES,
         NOT_CONFIRMED, "The share is higher, even without the products of attention."),
    ],
    ("Matrix multiplication", "tiles"): [
        ("cublas", "register-tiles",
         "cuBLAS reaches 95% of peak", _ARTICLES,
         NOT_CONFIRMED,
         "That peak assumes the highest clock and nothing but multiply-adds; the claim names no GPU, format or"
         " size."),
        ("occupancy", "register-tiles",
         "Above some point, higher occupancy does not help",
         'NVIDIA, *CUDA C++ Best Practices Guide*, "Occupancy"; Volkov, *Better Performance at Lower '
         "Occupancy*, 2010, slide 3",
         CONFIRMED, "The faster kernel has fewer warps, because each of its threads has more registers."),
        ("lda", "register-tiles",
         "GEMM's lda is at least m, and an element is at base + i x lda + j", _ONE_ARTICLE,
         NOT_CONFIRMED, "The bound belongs to column order and the address to row order, where lda is at least n."),
        ("tensor_core", "tensor-cores",
         "A tensor core does 256 times the work of a CUDA core in a cycle", _ARTICLES,
         CONDITION,
         "It holds for one tensor core of an A100; an SM has 64 CUDA cores and only 4 tensor cores, so its ratio "
         "is 16."),
        ("tf32", "tensor-cores",
         "TF32 runs at about 10x the speed of float32", _ARTICLES,
         NOT_CONFIRMED, "No GPU of this list has that ratio."),
        ("sixteen", "tensor-cores",
         "Sizes that are not multiples of 16 cost time",
         "articles; NVIDIA's Matrix Multiplication Background User's Guide (2023) recommends multiples of 16 bytes",
         CONDITION, "It holds, but the large tile of a block wastes more than the 16 of an instruction."),
    ],
    ("Convolution", "direct"): [
        ("factor", "direct-convolution",
         "A naive CUDA convolution is 10 to 100 times, or 180 times, slower than cuDNN", _ARTICLES,
         CONDITION,
         "The order of magnitude holds in float32; part of the factor is a better algorithm, not a better kernel."),
        ("speeds", "direct-convolution",
         "A naive CUDA convolution reaches 5 TFLOPS, and cuDNN 900", _ARTICLES,
         NOT_COMPARABLE, "900 TFLOP/s need tensor cores and 16 bits; the naive kernel has neither."),
        ("few_images", "direct-convolution",
         "Direct kernels are poor with 64 images or fewer", f"{_CUDNN}, of cuda-convnet2",
         CONDITION, "Layers with small planes lose most of their speed, and those with large planes lose little."),
    ],
    ("Convolution", "lowering"): [
        ("memory", "im2col-and-implicit-gemm",
         "im2col needs K² times the memory, K being the side of the filter", _CUDNN_ARTICLE,
         CONDITION,
         "It holds for stride 1 and padding that keeps the size; a stride or less padding makes it too much."),
        ("patches", "im2col-and-implicit-gemm",
         "A figure of im2col: a 3 x 3 image, a 3 x 3 filter, four patches", _CUDNN_ARTICLE,
         NOT_CONFIRMED, "The figure draws a filter of 2 x 2."),
        ("default", "im2col-and-implicit-gemm",
         "im2col with a GEMM is cuDNN's default", _CUDNN_ARTICLE,
         NOT_CONFIRMED, "On the layers of the cuDNN paper, cuDNN's search finds transforms."),
        ("baidu", "im2col-and-implicit-gemm",
         "Baidu gained 30% over lowering", f"{_CUDNN}, on Baidu's integration",
         NOT_COMPARABLE, "The size is plausible, but its networks, GPUs and lowering are not ours."),
        ("small_batches", "im2col-and-implicit-gemm",
         "With 16 images implicit GEMM keeps 86% of its peak throughput", f"{_CUDNN}, section 4, of a K40",
         NOT_CONFIRMED,
         "An H100 has 132 SMs to fill, a K40 had 15; `gathered` keeps that much only on the layer with the largest"
         " planes."),
        ("products", "im2col-and-implicit-gemm",
         "Speed depends on the products C R S and N P Q, not on the single sizes", f"{_CUDNN}, section 3",
         CONFIRMED,
         "Layers with equal products run at equal speed, with 1 to 4,096 images and filters of 1 x 1 to 16 x "
         "16."),
    ],
    ("Convolution", "transforms"): [
        ("count", "winograd",
         "F(2x2, 3x3) needs 16 multiplications in place of 36", _CUDNN_ARTICLE,
         CONFIRMED, "The count holds for each tile and channel."),
        ("speed", "winograd",
         "F(2x2, 3x3) is 2.25x faster", _CUDNN_ARTICLE,
         NOT_CONFIRMED, "On most layers, writing and reading the transformed tiles takes much of the saving."),
        ("picked", "winograd",
         "cuDNN picks F(2x2, 3x3) for every 3 x 3 layer of stride 1", _CUDNN_ARTICLE,
         NOT_CONFIRMED, "The search picks Winograd on most layers, but its error is that of F(4x4, 3x3)."),
        ("factors", "winograd",
         "The transforms need no multiplications, and the filter's is done once, in advance", _ARTICLES,
         CONDITION, "It holds for images and outputs of F(2x2, 3x3), and for filters that training does not change."),
        ("eleven", "fft-convolution",
         "With K = 11, 121 operations become about 7, 17 times fewer", _ARTICLES,
         CONDITION, "The saving depends on the size of the image: less on small images, more on large ones."),
        ("three", "fft-convolution",
         "With K = 3 an FFT gains nothing", _ARTICLES,
         NOT_CONFIRMED, "On planes of 28 x 28 the FFT needs fewer operations and is faster than the implicit GEMM."),
        ("pruned", "fft-convolution",
         "Pruned FFTs, which leave out the zeros of a small filter, are slower than dense ones", _ONE_ARTICLE,
         NOT_CONFIRMED,
         "`few_taps` skips the zeros by a direct sum, and is about as fast or faster; FFTs with butterflies left"
         " out were not measured."),
    ],
    ("Convolution", "choice"): [
        ("benchmark", "choosing-an-algorithm",
         "Benchmark mode is 20 to 40% faster", _ARTICLES,
         NOT_CONFIRMED, "Many layers gain nothing, and some gain far more."),
        ("first_call", "choosing-an-algorithm",
         "The first call in benchmark mode takes seconds", _ARTICLES,
         NOT_CONFIRMED, "On these layers it takes a fraction of a second."),
        ("shapes", "choosing-an-algorithm",
         "Benchmark mode is slower when shapes vary", _ARTICLES,
         CONFIRMED, "A shape must return many times before the gain exceeds the cost of its first call."),
        ("shares", "choosing-an-algorithm",
         "cuDNN reaches 23 to 35% of a K40's peak and 30 to 51% of a GTX 980's", f"{_CUDNN}, section 4, Table 2",
         NOT_COMPARABLE, "Those GPUs were not measured."),
        ("even", "choosing-an-algorithm",
         "cuDNN's share of peak is even across the layers of Table 2", f"{_CUDNN}, section 4, Table 2",
         CONDITION,
         "It holds for one algorithm, as cuDNN had then; the best of today's algorithms differs from layer to "
         "layer."),
        ("convnet", "choosing-an-algorithm",
         "cuDNN runs at 0.8 to 2.25x the speed of cuda-convnet2, most with few images", f"{_CUDNN}, Figure 2, of a K40",
         NOT_COMPARABLE,
         "Our kernels stand for both; one image gains most here, too, and the range is wider on an H100, which "
         "has more SMs to fill."),
        ("caffe", "choosing-an-algorithm",
         "cuDNN runs at 1.0 to 1.41x the speed of Caffe, by batch", f"{_CUDNN}, Figure 2, of a K40",
         NOT_COMPARABLE, "The range is wider on an H100, which one image at a time does not fill."),
        ("retuning", "choosing-an-algorithm",
         "Performance carries over to new architectures without retuning", _CUDNN,
         OPEN, "Our speeds were recorded on one architecture."),
        ("bits", "choosing-an-algorithm",
         "Results have equal bits on the same architecture and number of SMs, not across versions",
         'NVIDIA, documentation of cuBLAS, "Results reproducibility"',
         OPEN, "Two runs on one GPU agree; two cards and two versions were not compared."),
    ],
    ("Memory", "norms"): [
        ("unfused", "batchnorm-fused",
         "Batch norm and ReLU take about 10 passes over memory unfused", _ARTICLES,
         CONFIRMED, "Line by line they read and write the tensor that often."),
        ("fused", "batchnorm-fused",
         "Fused, batch norm and ReLU take 2 passes, one read and one write", _ARTICLES,
         CONDITION, "Fusion alone leaves 3; a kernel that keeps a channel on the chip needs 2."),
        ("faster", "batchnorm-fused",
         "Fusion makes batch norm and ReLU 5x faster", _ARTICLES,
         CONDITION, "Only a kernel that also loads one channel while it stores another reaches 5x."),
    ],
    ("Memory", "layouts"): [
        ("channels_last", "layouts-nhwc",
         "Channels-last is about 25% faster on ResNet-50", _ARTICLES,
         CONDITION, "On tensor cores it takes less time, above all in training; without tensor cores it is slower."),
        ("times", "layouts-nhwc",
         "ResNet-50 takes 9 ms in place of 12", _ARTICLES,
         NOT_COMPARABLE, "The claim names no batch, format or GPU."),
    ],
    ("Attention", "softmax"): [
        ("one_head", "attention-and-online-softmax",
         "At N = 8192 in fp16, S has 128 MB per head", _ATTENTION_ARTICLE,
         CONFIRMED, "S has N² elements of 2 bytes."),
        ("half_gb", "attention-and-online-softmax",
         "At N = 4096, S of 32 heads needs 512 MB", _ATTENTION_ARTICLE,
         NOT_CONFIRMED, "That would be 1 byte per element, half of fp16."),
        ("one_gb", "attention-and-online-softmax",
         "At N = 4096, S of 32 heads needs 1 GB", _ATTENTION_ARTICLE,
         CONFIRMED, "The same text gives this figure for the same quantity, in another place."),
        ("backward", "flash-attention-2-and-3",
         "Backward, standard attention keeps 64 MB per head and layer, 65 GB in all", _ATTENTION_ARTICLE,
         NOT_CONFIRMED, "A matrix in fp16 has half of that; 64 MB are float32, or S and P."),
        ("online", "attention-and-online-softmax",
         "Softmax is up to 1.3x faster if it is computed online",
         "Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018, abstract",
         NOT_CONFIRMED,
         "Up to 32,768 columns on an H100 the gain stays below 1.3x, and at some widths `online` is slower."),
        ("products", "attention-and-online-softmax",
         "Attention makes at least six products", _ATTENTION_ARTICLE,
         CONDITION,
         "It holds for a layer with four products with weights; attention itself has two, and the article's "
         "listing has five."),
    ],
    ("Attention", "flash"): [
        ("linear", "flash-attention",
         "FlashAttention makes O(N) accesses to HBM", _ATTENTION_ARTICLE,
         CONDITION, "The memory that it needs is O(N); accesses to HBM are linear only as long as L2 holds K and V."),
        ("once", "flash-attention",
         "With K and V in the outer loop, S is written to HBM only once", _ATTENTION_ARTICLE,
         NOT_CONFIRMED, "S is never written; that order reads and writes O for each tile of keys."),
        ("gain", "flash-attention",
         "FlashAttention is 2 to 4x faster than optimised baselines", f"{_FA2}; the attention article",
         CONDITION,
         "It holds for version 2 with heads of 128; the gain is larger with heads of 64, and smaller with heads "
         "of 256."),
        ("four_times", "flash-attention",
         "2,048 tokens take 12.3, 3.4, 2.1 and 1.4 ms with standard attention and versions 1, 2 and 3",
         _ATTENTION_ARTICLE,
         NOT_COMPARABLE, "The claim names no heads and no batch."),
        ("library", "flash-attention",
         "cuDNN is not the library for attention", _ATTENTION_ARTICLE,
         NOT_CONFIRMED, "Of the kernels measured here, cuDNN's is the fastest."),
        ("two_gb", "flash-attention",
         "Reading 2 GB takes 0.6 ms", _ATTENTION_ARTICLE,
         NOT_CONFIRMED, "The time is computed from a published bandwidth, which no copy reaches."),
    ],
    ("Attention", "versions"): [
        ("first", "flash-attention-2-and-3",
         "Version 1 reaches 25 to 40% of an A100's peak", _FA2,
         OPEN, "Neither version 1 nor an A100 was measured."),
        ("second", "flash-attention-2-and-3",
         "Version 2 reaches 50 to 73% of an A100's peak", _FA2,
         NOT_COMPARABLE, "The share does not carry over to an H100, and an A100 was not measured."),
        ("on_h100", "flash-attention-2-and-3",
         "Version 2 reaches 35% of an H100's peak", _FA3,
         CONFIRMED, "It holds with heads of 128 and 16,384 queries."),
        ("third", "flash-attention-2-and-3",
         "Version 3 reaches up to 75% of an H100's peak", _FA3,
         NOT_COMPARABLE, "Version 3 itself was not run; other kernels with its ideas stay below that."),
        ("eight_bits", "decoding-and-few-bits",
         "Attention in 8 bits is twice as fast as in 16", _ATTENTION_ARTICLE,
         NOT_CONFIRMED, "That holds for the GEMMs; maxima and exponentials take as long as before."),
    ],
    ("Networks", "primitives"): [
        ("pooling", "primitives",
         "The gradient of max pooling differs from run to run", _ARTICLES,
         OPEN, "Ten runs will tell."),
        ("accurate", "primitives",
         "Softmax takes longer in cuDNN's mode ACCURATE than in FAST", _ARTICLES,
         OPEN, "Both modes will be timed."),
        ("reserve", "primitives",
         "Dropout needs a reserve space", _ARTICLES,
         OPEN, "Its bytes will be counted."),
    ],
    ("Networks", "fusing"): [
        ("resnet", "fusing-a-network",
         "ResNet-50 with 32 images takes 4.2, 1.8 and 0.9 ms in FP32, FP16 and INT8", _ARTICLES,
         OPEN, "A test needs a GPU and the whole network in three formats."),
        ("accuracy", "fusing-a-network",
         "INT8 costs about 0.1% of accuracy", _ARTICLES,
         OPEN, "A test needs a trained network and labelled images."),
        ("images", "fusing-a-network",
         "ResNet-50 reaches 7,600, 17,800 and 35,500 images per second", _ARTICLES,
         OPEN, "The rates follow from the times of the first row, so the two rows are one claim."),
        ("by_itself", "fusing-a-network",
         "cuDNN fuses convolution, batch norm and ReLU by itself in benchmark mode", _ARTICLES,
         OPEN, "A trace of the three operations will tell."),
        ("compiler", "fusing-a-network",
         "torch.compile goes through cuDNN's graph API and nvFuser", _ARTICLES,
         OPEN, "A trace will tell."),
        ("one_kernel", "fusing-a-network",
         "torch.compile makes one kernel of convolution, batch norm and ReLU", _ARTICLES,
         OPEN, "A trace will tell."),
        ("listing", "fusing-a-network",
         "A listing builds an INT8 engine with TensorRT's `int8_calibrator`", _CUDNN_ARTICLE,
         OPEN, "TensorRT 11 no longer has this option; the chapter must use explicit quantisation."),
    ],
    ("Networks", "tracing"): [
        ("gpt2", "tracing-a-transformer",
         "GPT-2 with 512 tokens takes 6 ms: 50% linear layers, 23% attention, 5% LayerNorm", _ARTICLES,
         OPEN, "A trace of the forward pass will tell."),
        ("gpt3", "tracing-a-transformer",
         "GPT-3's FLOPs are divided 45, 35, 15 and 5%", _ARTICLES,
         OPEN,
         "The count of one layer fits none of these shares; the claim may mean shares of time, which were not "
         "measured."),
        ("sgemm", "tracing-a-transformer",
         "A trace of GPT-2 shows `cublasSgemm` on tensor cores, and flash attention", _ARTICLES,
         OPEN, "The two names belong to different formats, so one trace should not show both."),
    ],
    ("Networks", "training"): [
        ("caffe", "training",
         "cuDNN makes Caffe's training 36% faster", f"{_CUDNN}, abstract",
         OPEN, "36% more speed is not 36% less time; Caffe's protocol was not run."),
        ("auxiliary", "training",
         "cuDNN needs no auxiliary memory in Caffe", _CUDNN,
         OPEN, "The bytes of a training step will be measured."),
        ("table4", "training",
         "200 iterations take 290,106 s; the gains are 1.30, 1.45, 1.49 and 1.00", f"{_CUDNN}, Table 4",
         OPEN, "In seconds an iteration would take 24 minutes, so milliseconds must be meant."),
    ],
    ("Networks", "gpus"): [
        ("nccl", "many-gpus",
         "NCCL trains on up to eight GPUs", _ARTICLES,
         OPEN, "Its collectives will be timed."),
        ("sparse", NOWHERE,
         "cuSPARSE runs at up to 8x the speed of MKL", _LECTURE,
         OPEN, "This book has no sparse products."),
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A claim of a text, where it is from, and the verdict: one of `VERDICTS`, and the reason in a sentence.

    `chapter` is the slug of the chapter that measures it, or of a planned one, or "".
    """

    part: str
    section: str
    name: str
    chapter: str
    claim: str
    source: str
    verdict: str
    reason: str

    @property
    def link(self) -> str:
        """The chapter in Markdown, as a link if it is written."""
        chapter = book_contents().chapter(self.chapter)
        if chapter:
            return f"[chapter {chapter.number}]({chapter.name}.ipynb)"
        return f"*{PLANNED[self.chapter]}*, not written yet" if self.chapter else "no chapter"


@dataclass(frozen=True)
class Claims:
    """Claims with what was measured, by their names; a notebook shows them as a table."""

    rows: list[Claim]
    measured: Mapping[str, str] = field(default_factory=dict)

    def count(self) -> dict[str, dict[str, int]]:
        """Count the claims with each verdict, by part of the book."""
        found = Counter((row.part, row.verdict) for row in self.rows)
        parts = dict.fromkeys(row.part for row in self.rows)
        return {part: {verdict: found[part, verdict] for verdict in VERDICTS} for part in parts}

    def __repr__(self):
        columns = "claim", "source", "measured", "verdict"
        return repr(Table(columns, [(row.claim, row.source, self._measured(row), row.verdict) for row in self.rows]))

    def _repr_markdown_(self):
        lines = ["| claim and source | measured | verdict | where |", "|:---|:---|:---|:---|"]
        for row in self.rows:
            cells = f"*{row.claim}.*<br>{row.source}", self._measured(row), f"**{row.verdict}.** {row.reason}", row.link
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    def _measured(self, row):
        return self.measured.get(row.name, OPEN)


def claims(section: str = "", **measured: str) -> Claims:
    """Return all claims, or those of a section with what was measured.

    Parameters
    ----------
    **measured
        Text by the name of a claim: one for each claim whose verdict is not "open".
    """
    rows = [
        Claim(part, name, *row) for (part, name), found in _SECTIONS.items() for row in found if section in ("", name)
    ]
    if not rows:
        raise ValueError(f"There is no section {section!r}: choose from {', '.join(name for _, name in _SECTIONS)}.")
    if not section:
        return Claims(rows)
    if unknown := [name for name in measured if name not in {row.name for row in rows}]:
        raise ValueError(f"{section} has no claim {unknown[0]!r}: choose from {', '.join(row.name for row in rows)}.")
    if missing := [row.name for row in rows if row.verdict != OPEN and not measured.get(row.name)]:
        raise ValueError(f"{section} says nothing measured of {', '.join(missing)}.")
    return Claims(rows, measured)
