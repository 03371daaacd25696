//! The memory and file descriptors of this process, and the memory of others.

use std::path::Path;

use anyhow::{Context, Result};

/// Returns the resident memory in bytes.
pub fn resident() -> Result<usize> {
    size_of("VmRSS")
}

/// Returns the peak of the resident memory since [`reset_peak`], in bytes.
pub fn peak() -> Result<usize> {
    size_of("VmHWM")
}

/// Resets the peak that [`peak`] returns.
pub fn reset_peak() -> Result<()> {
    // proc_pid_clear_refs(5): 5 resets the peak.
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

fn size_of(name: &str) -> Result<usize> {
    kib(&std::fs::read_to_string("/proc/self/status")?, name)
}

/// Returns the resident memory of a process, a folder in `/proc`.
pub fn resident_of(process: &Path) -> Result<usize> {
    rollup(process, "Rss:")
}

/// Returns the memory of a process, a folder in `/proc`, with its share of what it has in
/// common with others.
pub fn proportional(process: &Path) -> Result<usize> {
    rollup(process, "Pss:")
}

fn rollup(process: &Path, name: &str) -> Result<usize> {
    kib(
        &std::fs::read_to_string(process.join("smaps_rollup"))?,
        name,
    )
}

/// Returns a size in bytes that the kernel tells in KiB.
fn kib(text: &str, name: &str) -> Result<usize> {
    let line = text.lines().find(|line| line.starts_with(name));
    let size = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: usize = size.context("no size")?.parse()?;
    Ok(kib * 1024)
}

/// Returns the number of open file descriptors.
pub fn descriptors() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}
