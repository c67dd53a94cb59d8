"""Vectors of 16 bytes in shared memory as an array of a thread: four float32, or eight bfloat16, two in a word."""

from labkit import cuda, ptx

FORMAT = ptx.BF16


@cuda.jit(device=True)
def take(tiles, piece, line, word, own):
    """The vector that begins at `tiles[piece, line, word]`."""
    own[0], own[1], own[2], own[3] = ptx.load4(tiles, (piece, line, word))


@cuda.jit(device=True)
def give(tiles, piece, line, word, own):
    """Puts a vector there."""
    ptx.store4(tiles, (piece, line, word), own[0], own[1], own[2], own[3])


@cuda.jit(device=True)
def take_bits(tiles, piece, line, word, own):
    """As `take`, of bfloat16."""
    a, b, c, d = ptx.load4(tiles, (piece, line, word))
    own[0], own[1] = ptx.unpack2(a, FORMAT)
    own[2], own[3] = ptx.unpack2(b, FORMAT)
    own[4], own[5] = ptx.unpack2(c, FORMAT)
    own[6], own[7] = ptx.unpack2(d, FORMAT)


@cuda.jit(device=True)
def give_bits(tiles, piece, line, word, own):
    """As `give`, of bfloat16."""
    a, b = ptx.pack2(own[0], own[1], FORMAT), ptx.pack2(own[2], own[3], FORMAT)
    c, d = ptx.pack2(own[4], own[5], FORMAT), ptx.pack2(own[6], own[7], FORMAT)
    ptx.store4(tiles, (piece, line, word), a, b, c, d)
