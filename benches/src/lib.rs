//! Shared code of the benchmarks: baselines without vmcell, and reporting.

pub mod bare_restore;
pub mod baseline;
pub mod concurrent_streams;
pub mod exec_time;
pub mod in_guest;
pub mod memory;
pub mod socket_pair;
pub mod summary;
pub mod transfers;
