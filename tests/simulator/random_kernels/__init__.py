"""Random kernels: the constructs of the language (`uses`), kernels with them (`writer`), and what ran (`executed`).

Results are compared with numba's (`oracles`), within an allowed difference (`tolerance`)."""
