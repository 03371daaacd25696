//! What the benchmarks share: the baseline, plain QEMU without vmcell.

pub mod baseline;
pub mod crowd;
pub mod memory;
pub mod summary;
