//! Limits of the process: setrlimit(2).

use std::io;

use rustix::{
    process::{Resource, Rlimit, setrlimit},
    system::uname,
};
use vmcell_launcher::{Layer, LayerStatus, Plan};

use crate::sys;

/// Sets the limits, for good.
pub(crate) fn apply(plan: &Plan, layers: &[LayerStatus]) -> io::Result<LayerStatus> {
    let limits = &plan.limits;
    // No dump fits into one byte. With zero, the kernel would still pass it to a program that
    // collects dumps.
    set(Resource::Core, 1)?;
    set(Resource::Memlock, 0)?;
    set(Resource::Msgqueue, 0)?;
    set(Resource::Nofile, limits.open_files)?;
    let mut detail = format!(
        "{} open files, no locked memory, no core dump",
        limits.open_files
    );
    if counts_threads(layers) {
        set(Resource::Nproc, limits.threads)?;
        detail += &format!(", {} threads", limits.threads);
    }
    if let Some(size) = limits.address_space {
        set(Resource::As, size)?;
        detail += &format!(", {} MiB of address space", size >> 20);
    }
    if let Some(size) = limits.file_size {
        detail += &format!(", files of {} MiB", size >> 20);
    }
    if let Some(seconds) = limits.cpu_seconds {
        detail += &format!(", {seconds} s of processor time");
    }
    apply_quotas(plan)?;
    Ok(LayerStatus::active(Layer::Limits, detail))
}

/// Sets the limits that every VMM has, also one that is not confined.
pub(crate) fn apply_quotas(plan: &Plan) -> io::Result<()> {
    if let Some(size) = plan.limits.file_size {
        // A write beyond it then fails, and the process goes on.
        sys::ignore_file_size_signal()?;
        set(Resource::Fsize, size)?;
    }
    if let Some(seconds) = plan.limits.cpu_seconds {
        // Both limits are the same, because the first process of a namespace ignores the signal
        // of the lower one.
        set(Resource::Cpu, seconds)?;
    }
    Ok(())
}

/// Sets a limit, or leaves it if it is lower already.
fn set(resource: Resource, limit: u64) -> io::Result<()> {
    let limit = match rustix::process::getrlimit(resource).maximum {
        Some(maximum) => maximum.min(limit),
        None => limit,
    };
    let both = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(resource, both)?;
    Ok(())
}

/// Whether the kernel counts the threads of this VMM apart from others of the same user: it
/// has a user of its own, or a user namespace since Linux 5.14.
fn counts_threads(layers: &[LayerStatus]) -> bool {
    let is_active = |layer| {
        let found = layers.iter().find(|status| status.layer == layer);
        found.is_some_and(|status| status.is_active)
    };
    is_active(Layer::User)
        || is_active(Layer::Namespaces)
            && !rustix::process::geteuid().is_root()
            && kernel_version() >= Some((5, 14))
}

fn kernel_version() -> Option<(u32, u32)> {
    let uname = uname();
    let release = uname.release().to_string_lossy();
    let mut numbers = release.split(|char: char| !char.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
