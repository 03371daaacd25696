//! What the benchmarks share: the baseline, plain QEMU without vmcell.

pub mod baseline;
pub mod crowd;
pub mod memory;
pub mod socket_pair;
pub mod summary;
