"""The least compute capability that each instruction needs, where any GPU of the book lacks it.

An instruction whose formats differ in that has an entry for each, beside the format's number. A third part, "a",
stands for what one architecture alone has. (PTX ISA, "Target ISA Notes" of each instruction.)
"""

from labkit.ptx.formats import BF16, E4M3, FP16, INT8, TF32

LEAST = {
    (8, 0): "cp_async cp_async_commit cp_async_wait pack2 to_tf32 mbarrier_init mbarrier_arrive",
    (7, 5): "ldmatrix2 ldmatrix4 ldmatrix2_transposed ldmatrix4_transposed",
    (9, 0): """stmatrix4 fence_async mbarrier_init_fence mbarrier_expect mbarrier_wait mbarrier_arrive_at cluster_rank
    cluster_sync tma_load tma_load_multicast tma_prefetch tma_store tma_store_commit tma_store_wait
    launch_wait launch_release""",
    (9, 0, "a"): """wgmma wgmma_registers wgmma_major wgmma_registers_major wgmma_fence wgmma_commit wgmma_wait
    setmaxnreg_inc setmaxnreg_dec""",
}
CAPABILITIES: dict = {name: capability for capability, names in LEAST.items() for name in names.split()}
CAPABILITIES |= {("mma", number): (8, 9) if number == E4M3 else (8, 0) for number in (BF16, FP16, TF32, E4M3, INT8)}


def lacks(capability: tuple, needed: tuple) -> bool:
    """Is an instruction that needs one compute capability missing on a GPU of another?"""
    if len(needed) == 3:
        return tuple(capability[:2]) != needed[:2]
    return tuple(capability[:2]) < needed
