use std::fs;

use rustix::{process::geteuid, system::uname};

use crate::backend::BackendHealth;

/// The first kernel that can mount overlayfs in user namespaces, and the first
/// one that can do so with idmapped layers, which root needs.
const OVERLAY: (u32, u32) = (5, 11);
const IDMAPPED_OVERLAY: (u32, u32) = (5, 19);

/// Returns whether namespaces can be created, judging by the kernel's version
/// and settings.
pub(super) fn health() -> BackendHealth {
    match missing_support(geteuid().is_root()) {
        Some(reason) => BackendHealth::unavailable(reason),
        None => BackendHealth::available(
            "the kernel allows user namespaces; it is not a VM and no security boundary",
        ),
    }
}

fn missing_support(is_root: bool) -> Option<String> {
    let setting = |path: &str| {
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let needed = if is_root { IDMAPPED_OVERLAY } else { OVERLAY };
    let uname = uname();
    let release = uname.release().to_string_lossy();
    if version(&release).is_some_and(|version| version < needed) {
        let (major, minor) = needed;
        return Some(format!(
            "the kernel is Linux {release}, and overlayfs in user namespaces needs {major}.{minor}"
        ));
    }
    if setting("/proc/sys/user/max_user_namespaces") == Some(0) {
        return Some(
            "the kernel allows no user namespaces: `sysctl user.max_user_namespaces=10000`"
                .to_owned(),
        );
    }
    if is_root {
        return None;
    }
    if setting("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        return Some(
            "user namespaces are for root only: `sysctl kernel.unprivileged_userns_clone=1`"
                .to_owned(),
        );
    }
    let confined = fs::read_to_string("/proc/self/attr/current");
    let restricted = setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1);
    if restricted && confined.is_ok_and(|profile| profile.starts_with("unconfined")) {
        return Some(
            "AppArmor allows no user namespaces: give the program a profile with `userns,`, or \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
                .to_owned(),
        );
    }
    None
}

/// Parses the first two numbers of a kernel release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|char: char| !char.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_first_two_numbers() {
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("5.15"), Some((5, 15)));
        assert_eq!(version("6.6-rc1"), Some((6, 6)));
        assert_eq!(version("unknown"), None);
        assert!(version("5.9.1") < Some(OVERLAY));
    }
}
