//! What this machine has and lacks for running VMs.

use std::{path::Path, process::Command};

use crate::{
    acceleration::{Acceleration, AccelerationChoice},
    error::Error,
    locate,
};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at: `qemu`, `kernel`, `acceleration`.
    pub name: &'static str,
    /// Whether it is there.
    pub status: Status,
    /// What was found, or what to do.
    pub detail: String,
}

/// Whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// It is there.
    Good,
    /// VMs run without it, but not as well.
    Poor,
    /// No VM can run without it.
    Missing,
}

impl Finding {
    /// A finding of a caller's own, to be listed with the others.
    pub fn new(name: &'static str, status: Status, detail: impl Into<String>) -> Self {
        Self {
            name,
            status,
            detail: detail.into(),
        }
    }
}

/// Looks at everything that a VM needs of the machine. It changes nothing.
///
/// ```no_run
/// for finding in vmcell::doctor::examine() {
///     println!("{}: {}", finding.name, finding.detail);
/// }
/// ```
pub fn examine() -> Vec<Finding> {
    vec![qemu(), kernel(), acceleration()]
}

fn qemu() -> Finding {
    match locate::qemu(None) {
        Ok(path) => match version(&path) {
            Some(version) => {
                let detail = format!("{version} ({})", path.display());
                Finding::new("qemu", Status::Good, detail)
            }
            None => {
                let detail = format!("{} does not run", path.display());
                Finding::new("qemu", Status::Missing, detail)
            }
        },
        Err(error) => missing("qemu", &error),
    }
}

fn kernel() -> Finding {
    match locate::kernel(None) {
        Ok(path) => {
            let detail = match kernel_release(&path) {
                Some(release) => format!("Linux {release} ({})", path.display()),
                None => path.display().to_string(),
            };
            Finding::new("kernel", Status::Good, detail)
        }
        Err(error) => missing("kernel", &error),
    }
}

fn acceleration() -> Finding {
    let choice = AccelerationChoice::detect();
    let status = match choice.acceleration {
        Acceleration::Kvm => Status::Good,
        Acceleration::Tcg => Status::Poor,
    };
    let detail = format!("{}: {}", choice.acceleration, choice.reason);
    Finding::new("acceleration", status, detail)
}

fn missing(name: &'static str, error: &Error) -> Finding {
    Finding::new(name, Status::Missing, error.to_string())
}

/// What the build script noted beside the kernel.
fn kernel_release(kernel: &Path) -> Option<String> {
    let notes = std::fs::read_to_string(kernel.with_file_name("version")).ok()?;
    let mut lines = notes.lines();
    lines
        .find_map(|line| line.strip_prefix("release="))
        .map(str::to_owned)
}

/// The first line that the program says of itself.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}
