"""Random kernels: what the language allows (`uses`), kernels that hold it (`writer`), what of it ran (`executed`)."""
