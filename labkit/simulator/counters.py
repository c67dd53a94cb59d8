"""Reducers from the addresses of one warp instruction to counts, as njit loops over warps.

Counting during the run keeps no addresses. Every function takes the flat element index of each lane of a warp set, a
mask, and `warps` with a row per warp (columns in warps.py). `totals` has a row of counts for the whole chunk, or one
per block. Shared memory has 32 banks of 4 bytes, and a wavefront serves one distinct word per bank (CUDA C++
Programming Guide, "Shared Memory"). An access of 64 bits is served by half-warp, one of 128 bits by quarter-warp. A
load of these is served two parts at a time where its lanes read the same word in pairs.
"""

import numpy as np

from labkit.simulator.caches import Cache, is_latest, touch
from labkit.simulator.seam import inner_njit, njit
from labkit.simulator.warps import BLOCK, SLOT, SM, START, STOP, THREAD
from labkit.trace import WARP_LANES

# Counts per site. ALONE: shared accesses while no asynchronous operation is in flight to the array.
ACCESSES, REQUESTS, SECTORS, WAVEFRONTS, CONFLICTS, L1_HITS, L2_HITS, ALONE = range(8)
COUNTS = 8

MAX_WARPS = 32  # per block


@inner_njit
def bank_wavefronts(words, lanes, bank_lane, next_lane):
    """Return the wavefronts of `lanes` accesses: the greatest number of distinct words in one bank."""
    depth = np.empty(32, np.int64)
    for bank in range(32):  # `np.zeros` takes numba longer to compile
        bank_lane[bank], depth[bank] = -1, 0
    worst = 0
    for lane in range(lanes):
        word = words[lane]
        bank = word % 32
        other = bank_lane[bank]
        while other >= 0 and words[other] != word:
            other = next_lane[other]
        if other < 0:
            next_lane[lane] = bank_lane[bank]
            bank_lane[bank] = lane
            depth[bank] += 1
            if depth[bank] > worst:
                worst = depth[bank]
    return worst


@inner_njit
def lanes_read_in_pairs(flat, mask, start, stop):
    """Return whether each lane reads what its neighbour reads, or what the lane after its neighbour reads.

    Then a wide load returns half as many registers as it has lanes to serve (NVIDIA of compute capability 7.x, at
    forums.developer.nvidia.com/t/77228; measured with ncu on an H100).
    """
    for distance in (1, 2):
        agree = True
        for lane in range(start, stop):
            other = start + ((lane - start) ^ distance)
            if other < stop and mask[lane] and mask[other] and flat[lane] != flat[other]:
                agree = False
        if agree:
            return True
    return False


@njit(cache=True)
def lanes_at_once(flat, mask, start, stop, lane_bytes, is_load):
    """Return how many neighbouring lanes of a warp one wavefront may serve, of which each accesses `lane_bytes`."""
    if lane_bytes <= 4:
        return 32
    pairs = 2 if is_load and lanes_read_in_pairs(flat, mask, start, stop) else 1
    return pairs * (128 // lane_bytes)


@inner_njit
def _extent(flat, begin, end):
    """Return the distance between the lowest and the highest element of some lanes."""
    low = high = flat[np.uint64(begin)]
    for lane in range(np.uint64(begin), np.uint64(end)):
        element = flat[lane]
        low = element if element < low else low
        high = element if element > high else high
    return high - low


@njit(cache=True)
def count_shared(flat, first_byte, itemsize, width, elements, mask, all_lanes, is_load, warps, totals):
    """Count requests, wavefronts and bank conflicts of one access to shared memory.

    `flat` counts elements over all blocks; each block's copy of the array has `elements` and starts at `first_byte` of
    its shared memory. Each lane accesses `width` adjacent elements from `flat` on. `all_lanes`: the mask holds every
    lane.
    """
    words = np.empty(32, np.int64)
    bank_lane = np.empty(32, np.int64)
    next_lane = np.empty(32, np.int64)
    for warp in range(warps.shape[0]):
        start, stop = warps[warp, START], warps[warp, STOP]
        at_once = lanes_at_once(flat, mask, start, stop, itemsize * width, is_load)
        min_wavefronts = wavefronts = active = 0
        begin = start
        while begin < stop:
            end = begin + at_once if begin + at_once < stop else stop
            # at most 32 adjacent words are in different banks, whichever lane reads which
            if all_lanes and _extent(flat, begin, end) * itemsize <= 124:
                min_wavefronts += 1
                wavefronts += 1
                active += end - begin
            else:
                base = flat[start] - flat[start] % elements if elements > 0 else 0
                lanes = low = high = np.int64(0)  # numba would compile what takes a literal twice
                for lane in range(begin, end):
                    if mask[lane]:
                        word = (first_byte + (flat[lane] - base) * itemsize) // 4
                        if lanes == 0:
                            low = high = word
                        low = word if word < low else low
                        high = word if word > high else high
                        words[lanes] = word
                        lanes += 1
                if lanes:
                    min_wavefronts += 1
                    wavefronts += 1 if high - low < 32 else bank_wavefronts(words, lanes, bank_lane, next_lane)
                    active += lanes
            begin = end
        if active:
            row = warps[warp, SLOT] if totals.shape[0] > 1 else 0
            totals[row, ACCESSES] += active
            totals[row, REQUESTS] += 1
            totals[row, WAVEFRONTS] += wavefronts
            totals[row, CONFLICTS] += wavefronts - min_wavefronts


@njit(cache=True)
def count_plain(mask, warps, totals):
    """Count accesses and requests alone, for local and constant memory."""
    for warp in range(warps.shape[0]):
        active = 0
        for lane in range(warps[warp, START], warps[warp, STOP]):
            if mask[lane]:
                active += 1
        if active:
            row = warps[warp, SLOT] if totals.shape[0] > 1 else 0
            totals[row, REQUESTS] += 1
            totals[row, ACCESSES] += active


@njit(cache=True)
def count_global(
    flat, address, itemsize, mask, warps, warp_clock, is_load, entries, sectors_per_line, hashed, totals, to_l2
):
    """Count the sectors of one access to global memory; look up loads in L1, and list its misses for L2.

    `warp_clock` counts each warp's global accesses: the time by which L2 orders what the SMs send it. Returns the
    number of rows of `to_l2` (clock, warp, sector, SM) that were filled; warps are numbered through the grid.
    """
    l1 = Cache(entries, sectors_per_line, hashed)  # numba takes longer to read a tuple than three arguments
    sectors = np.empty(64, np.int64)
    table = np.empty(128, np.int64)  # open addressing: the sectors that this warp has accessed
    stamps = np.empty(128, np.int64)
    for entry in range(128):  # `np.full` takes numba longer to compile
        stamps[entry] = -1
    rows = 0
    for warp in range(warps.shape[0]):
        distinct = active = hits = 0
        last_sector = -1
        for lane in range(warps[warp, START], warps[warp, STOP]):
            if not mask[lane]:
                continue
            active += 1
            # elements are aligned, so each lies in one sector
            sector = (address + flat[lane] * itemsize) >> 5
            if sector == last_sector:
                continue
            last_sector = sector
            entry = (sector * 2654435761 >> 12) & 127  # multiplicative hash (Knuth): spreads strides over the table
            while stamps[entry] == warp and table[entry] != sector:
                entry = (entry + 1) & 127
            if stamps[entry] != warp:
                stamps[entry] = warp
                table[entry] = sector
                sectors[distinct] = sector
                distinct += 1
        if not active:
            continue
        clock = warp_clock[warp]
        warp_clock[warp] += 1
        for i in range(distinct):
            sm, sector = warps[warp, SM], sectors[i]
            if is_load and (is_latest(l1, sm, sector) or touch(l1, sm, sector, not is_load)[0]):
                hits += 1
            else:
                to_l2[rows, 0] = clock
                to_l2[rows, 1] = warps[warp, BLOCK] * MAX_WARPS + warps[warp, THREAD] // WARP_LANES
                to_l2[rows, 2] = sector
                to_l2[rows, 3] = sm
                rows += 1
        row = warps[warp, SLOT] if totals.shape[0] > 1 else 0
        totals[row, ACCESSES] += active
        totals[row, REQUESTS] += 1
        totals[row, SECTORS] += distinct
        totals[row, L1_HITS] += hits
    return rows
