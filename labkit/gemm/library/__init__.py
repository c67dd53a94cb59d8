"""Kernel of `gemm.multiply`: one kernel for products of any kind, composed of device functions.

Other operations use these functions in kernels of their own, or replace some by name:
`specialise(general, load_left=..., blend=...)`. Each argument of the kernel is a tuple that only the replaceable
functions of its role read, so a replacement also chooses what its tuple holds.

    scheduler.py  an item of work: part of k, tile, product of the batch
    load.py       `load_left`, `load_right`: begin the copies of a stage of an operand
    main_loop.py  `load_stages` fills the stages of a tile, `accumulate` multiplies them
    split.py      split-k: the last of the blocks that share a tile adds their sums
    epilogue.py   `epilogue(acc, origin, output, box)`: `blend` changes the sums, `store` writes them
    kernel.py     `general`, the kernel
    constants.py  its default compile-time constants

The stages are a ring of `labkit.parts.ring`. On the host a `Tiling` (tilings.py) divides a product into work, a `Form`
(form.py) holds everything the kernel is compiled for, and `launches` (launches.py) makes the launch for arrays.
"""
