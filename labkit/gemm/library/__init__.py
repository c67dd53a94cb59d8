"""What `gemm.multiply` stands on: one kernel for products of any kind, put together from device functions.

Operations that come later take these functions for kernels of their own, or replace some in this one, by name:
`specialise(general, load_left=..., blend=...)`. Arguments of the kernel are tuples, each read by the functions that it
is for alone, so that who replaces these also chooses what the tuple holds.

    ring.py       stages of shared memory that a producer fills and consumers empty, in turns, behind barriers
    scheduler.py  an item of work: which part of k, of which tile, of which product of a batch
    load.py       `load_left`, `load_right`: begin to fetch a stage of an operand
    main_loop.py  `fetch` fills the stages of a tile, and `accumulate` multiplies them
    split.py      the last of the blocks that share a tile adds their sums
    epilogue.py   `epilogue(sums, place, output, box)`: `blend` changes the sums, and `store` brings them out
    kernel.py     `general`, the kernel
    constants.py  what it is compiled for, by default

On the host a `Tiling` (tilings.py) says how a product is cut up, a `Form` (form.py) what the kernel is compiled for,
and `launches` (launches.py) gives the launch for arrays.
"""
