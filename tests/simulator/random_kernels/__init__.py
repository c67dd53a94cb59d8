"""Random kernels: what the language allows (`uses`), kernels that hold it (`writer`), what of it ran (`executed`), what
numba says of them (`oracles`), and how far two right answers may lie apart (`tolerance`)."""
