//! What the benchmarks share: the baseline, plain QEMU without vmcell.

pub mod baseline;
pub mod memory;
pub mod summary;
