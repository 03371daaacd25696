//! What a dynamically linked program needs of the host.

use std::path::{Path, PathBuf};

/// Where loaders look for libraries, and stores of packages where nothing is elsewhere. They
/// contain what the system's packages installed, and nothing of its users.
const SYSTEM: [&str; 9] = [
    "/etc/ld.so.cache",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
];

/// Returns the files and folders that a program at this path may need. Some may not exist.
pub(super) fn of(program: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    // Of a program in `/opt/x/bin`.
    let prefix = program.parent().and_then(Path::parent);
    if let Some(prefix) = prefix.filter(|prefix| *prefix != Path::new("/")) {
        paths.extend([prefix.join("lib"), prefix.join("lib64")]);
    }
    paths
}
