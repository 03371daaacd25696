//! What this program holds.

use anyhow::{Context, Result};

/// How many bytes of memory are resident.
pub fn resident() -> Result<usize> {
    size_of("VmRSS")
}

/// How many bytes of memory were resident at most since [`forget_peak`].
pub fn peak() -> Result<usize> {
    size_of("VmHWM")
}

/// What was before does not count for [`peak`].
pub fn forget_peak() -> Result<()> {
    // proc_pid_clear_refs(5): 5 resets the peak.
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

fn size_of(name: &str) -> Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name));
    let size = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: usize = size.context("no size")?.parse()?;
    Ok(kib * 1024)
}

/// How many descriptors are open.
pub fn descriptors() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}
