"""Batch norm in inference, with ReLU: each value read and written once, in either layout."""

from labkit.formats import BF16, FP16, FP32
from labkit.norm.inference import BatchInference

PROBLEM = BatchInference
FORMATS = FP32, BF16, FP16
RECORD = "norm_batch_inference"  # of timings, in labkit/results
