//! Firecracker versions with known vulnerabilities.

use std::path::Path;

use crate::backend::version::Version;

/// The first version with the fix.
const FIRST_FIXED: Version = Version(1, 14, 4);

/// A later version without the fix.
const ALSO_VULNERABLE: Version = Version(1, 15, 0);

/// Returns why this Firecracker must not be used; `None` if no vulnerability is
/// known.
pub(crate) fn vulnerability(program: &Path) -> Option<String> {
    check_version(program, Version::of(program))
}

fn check_version(program: &Path, version: Option<Version>) -> Option<String> {
    let program = program.display();
    match version {
        None => Some(format!(
            "{program} prints no version: it is not Firecracker"
        )),
        Some(version) if version < FIRST_FIXED || version == ALSO_VULNERABLE => Some(format!(
            "{program} is version {version}, which has CVE-2026-5747 (a guest can write outside \
             of its memory): install {FIRST_FIXED}, or 1.15.1 or later"
        )),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_bad_versions_are_named_with_what_to_do() {
        let checked = |version| check_version(Path::new("/bin/firecracker"), version);
        for bad in [
            Version(1, 14, 3),
            Version(1, 13, 0),
            Version(0, 25, 2),
            Version(1, 15, 0),
        ] {
            let reason = checked(Some(bad)).unwrap();
            assert!(reason.contains("CVE-2026-5747"), "{reason}");
            assert!(reason.contains("install 1.14.4"), "{reason}");
        }
        for good in [Version(1, 14, 4), Version(1, 15, 1), Version(2, 0, 0)] {
            assert_eq!(checked(Some(good)), None);
        }
        assert!(checked(None).unwrap().contains("prints no version"));
    }
}
