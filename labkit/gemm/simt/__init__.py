"""float32 products of any shape on CUDA cores: one kernel, `simt`, with tiles from 4 x 128 to 128 x 256.

A `Tiling` divides a product into the tiles of blocks, the block's tile among its warps, and k into parts. `launches`
makes the launches for arrays of any strides.

    tilings.py    the tilings, ranked by estimated time
    constants.py  default compile-time constants of the kernel
    tiles.py      copies of a stage to shared memory, and products of tiles
    kernel.py     the kernel
    launches.py   its launches

(CUTLASS calls kernels without tensor cores SIMT.)
"""
