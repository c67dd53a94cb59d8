"""Arrays of the device: their memory under other shapes and strides, where it begins, and memory beside operands."""
