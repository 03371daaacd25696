//! What this program holds.

use anyhow::{Context, Result};

/// How many bytes of memory are resident.
pub fn resident() -> Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let size = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: usize = size.context("no size")?.parse()?;
    Ok(kib * 1024)
}

/// How many descriptors are open.
pub fn descriptors() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}
