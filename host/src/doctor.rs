//! Checks what this machine has and lacks for running VMs.

use std::path::Path;

use rustix::{
    fs::{Access, access},
    io::Errno,
};

use crate::{
    acceleration::{Acceleration, AccelerationChoice},
    backend::{Backend, CloudHypervisor, Firecracker, HostProcess, version_line, vulnerability},
    confinement::{self, Layer, LayerStatus},
    error::Error,
    locate,
};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// What was checked: `qemu`, `kernel`, `link vsock`.
    pub name: &'static str,
    /// Its status.
    pub status: CheckStatus,
    /// What was found, or what to do about it.
    pub detail: String,
}

/// The status of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum CheckStatus {
    /// It is present.
    Good,
    /// VMs run without it, but not as well; or it is present and must not be
    /// used.
    Poor,
    /// It is absent, and VMs run without it.
    Absent,
    /// It is absent, and no VM can run without it.
    Missing,
}

impl CheckStatus {
    /// Returns a stable name, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Poor => "poor",
            Self::Absent => "absent",
            Self::Missing => "missing",
        }
    }
}

impl Finding {
    /// Creates a finding, so that callers can add checks of their own.
    pub fn new(name: &'static str, status: CheckStatus, detail: impl Into<String>) -> Self {
        Self {
            name,
            status,
            detail: detail.into(),
        }
    }
}

/// Checks everything that a VM needs of the machine: each backend, each link,
/// the guest's kernel, its acceleration, and how its VMM would be
/// [confined](crate::confinement). It has no side effects.
///
/// ```no_run
/// for finding in vmcell::doctor::examine() {
///     println!("{}: {}", finding.name, finding.detail);
/// }
/// ```
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![qemu(), firecracker(), cloud_hypervisor()];
    let is_good = |finding: &Finding| finding.status == CheckStatus::Good;
    if !findings.iter().any(is_good) {
        // One of them is required, and QEMU runs everywhere.
        if let Some(qemu) = findings.first_mut() {
            qemu.status = CheckStatus::Missing;
        }
    }
    findings.extend([process(), kernel(), acceleration(), vsock(), hybrid_vsock()]);
    findings.extend(confinement());
    findings
}

fn qemu() -> Finding {
    match locate::qemu(None) {
        Ok(path) => match version_line(&path) {
            Some(version) => {
                let detail = format!("{version} ({})", path.display());
                Finding::new("qemu", CheckStatus::Good, detail)
            }
            None => {
                let detail = format!("{} does not run", path.display());
                Finding::new("qemu", CheckStatus::Poor, detail)
            }
        },
        Err(error) => absent("qemu", &error),
    }
}

fn firecracker() -> Finding {
    match locate::firecracker(None) {
        Ok(program) => match vulnerability(&program) {
            // Reported even if it could not run for other reasons.
            Some(vulnerability) => Finding::new("firecracker", CheckStatus::Poor, vulnerability),
            None => from_health("firecracker", &Firecracker::new()),
        },
        Err(error) => absent("firecracker", &error),
    }
}

fn cloud_hypervisor() -> Finding {
    match locate::cloud_hypervisor(None) {
        Ok(_) => from_health("cloud_hypervisor", &CloudHypervisor::new()),
        Err(error) => absent("cloud_hypervisor", &error),
    }
}

fn process() -> Finding {
    let health = HostProcess::new().health();
    let status = match health.is_available {
        true => CheckStatus::Good,
        false => CheckStatus::Absent,
    };
    Finding::new("process", status, health.reason)
}

/// The result of the backend's own health check, if its program is present.
fn from_health(name: &'static str, backend: &dyn Backend) -> Finding {
    let health = backend.health();
    let status = match health.is_available {
        true => CheckStatus::Good,
        false => CheckStatus::Poor,
    };
    Finding::new(name, status, health.reason)
}

/// The link that the host's kernel provides.
fn vsock() -> Finding {
    let name = "link vsock";
    let device = "/dev/vhost-vsock";
    match access(device, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => Finding::new(name, CheckStatus::Good, format!("{device} works")),
        Err(Errno::NOENT) => {
            let detail = format!("there is no {device}: load the module vhost_vsock");
            Finding::new(name, CheckStatus::Absent, detail)
        }
        Err(_) => {
            let detail = format!("{device} may not be used by this user: add it to the group kvm");
            Finding::new(name, CheckStatus::Poor, detail)
        }
    }
}

/// The link whose device is a separate program.
fn hybrid_vsock() -> Finding {
    let name = "link hybrid-vsock";
    match locate::vhost_device_vsock(None) {
        Ok(path) => Finding::new(name, CheckStatus::Good, path.display().to_string()),
        Err(error) => absent(name, &error),
    }
}

fn kernel() -> Finding {
    match locate::kernel(None) {
        Ok(path) => {
            let detail = match kernel_release(&path) {
                Some(release) => format!("Linux {release} ({})", path.display()),
                None => path.display().to_string(),
            };
            Finding::new("kernel", CheckStatus::Good, detail)
        }
        Err(error) => Finding::new("kernel", CheckStatus::Missing, error.to_string()),
    }
}

fn acceleration() -> Finding {
    let choice = AccelerationChoice::detect();
    let status = match choice.acceleration {
        Acceleration::Kvm => CheckStatus::Good,
        Acceleration::Tcg => CheckStatus::Poor,
    };
    let detail = format!("{}: {}", choice.acceleration, choice.reason);
    Finding::new("acceleration", status, detail)
}

/// The layers that confine VMMs.
fn confinement() -> Vec<Finding> {
    match confinement::examine() {
        Ok(layers) => layers.iter().map(layer).collect(),
        Err(error) => vec![Finding::new(
            "confinement",
            CheckStatus::Poor,
            error.to_string(),
        )],
    }
}

fn layer(status: &LayerStatus) -> Finding {
    // What makes up for another layer, or is for root or systemd to give, is not missed.
    let (name, if_inactive) = match status.layer {
        Layer::User => ("confinement user", CheckStatus::Absent),
        Layer::Cgroup => ("confinement cgroup", CheckStatus::Absent),
        Layer::Namespaces => ("confinement namespaces", CheckStatus::Poor),
        Layer::Landlock => ("confinement landlock", CheckStatus::Poor),
        Layer::Seccomp => ("confinement seccomp", CheckStatus::Poor),
        Layer::Capabilities => ("confinement capabilities", CheckStatus::Poor),
        Layer::Limits => ("confinement limits", CheckStatus::Poor),
        _ => ("confinement", CheckStatus::Poor),
    };
    let status_text = match status.is_active {
        true => CheckStatus::Good,
        false => if_inactive,
    };
    Finding::new(name, status_text, &status.detail)
}

fn absent(name: &'static str, error: &Error) -> Finding {
    Finding::new(name, CheckStatus::Absent, error.to_string())
}

/// Returns the release that the build script recorded beside the kernel.
fn kernel_release(kernel: &Path) -> Option<String> {
    let notes = std::fs::read_to_string(kernel.with_file_name("version")).ok()?;
    let mut lines = notes.lines();
    lines
        .find_map(|line| line.strip_prefix("release="))
        .map(str::to_owned)
}
