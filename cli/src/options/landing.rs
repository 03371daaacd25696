//! Where a copy lands.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// What `source` becomes: `destination`, or an entry of that name in it, if it
/// is a directory or is written as one.
pub fn landing(source: &Path, destination: &Path, is_directory: bool) -> PathBuf {
    match last_name(source) {
        Some(name) if is_directory || is_written_as_directory(destination) => {
            destination.join(name)
        }
        _ => destination.to_owned(),
    }
}

/// Whether something that comes from a guest goes into this directory, under a
/// name of its own. A symbolic link is not one: a guest may have sent it. What
/// writes there refuses it then, so that nobody is surprised.
pub fn is_directory_to_enter(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// The last name of a path. None: the path means what is in a directory, as
/// `.` does.
pub fn last_name(path: &Path) -> Option<OsString> {
    let bytes = path.as_os_str().as_bytes();
    let mut names = bytes.rsplit(|byte| *byte == b'/');
    match names.find(|name| !name.is_empty()) {
        None | Some(b"." | b"..") => None,
        Some(name) => Some(OsStr::from_bytes(name).to_owned()),
    }
}

fn is_written_as_directory(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_land_where_cp_puts_them() {
        for (source, destination, is_directory, expected) in [
            ("a/b", "c", false, "c"),
            ("a/b", "c", true, "c/b"),
            ("a/b/", "c", true, "c/b"),
            ("a/b", "c/", false, "c/b"),
            (".", "c", true, "c"),
            ("a/.", "c", true, "c"),
            ("a/..", "c/", false, "c/"),
            ("/", "c", true, "c"),
        ] {
            let landed = landing(source.as_ref(), destination.as_ref(), is_directory);
            assert_eq!(landed.as_os_str(), expected, "{source} {destination}");
        }
    }
}
