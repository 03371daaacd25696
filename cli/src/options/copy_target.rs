//! Where a copy goes, by the rules of cp(1).

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Returns the path of the copy: `destination`, or an entry with the source's
/// name in it if it is a directory or ends with a slash.
pub fn copy_target(source: &Path, destination: &Path, is_directory: bool) -> PathBuf {
    match last_component(source) {
        Some(name) if is_directory || has_trailing_slash(destination) => destination.join(name),
        _ => destination.to_owned(),
    }
}

/// Returns whether a copy from a guest goes into this directory. A symbolic
/// link to a directory does not count, because a guest may have sent it;
/// writing to it is then refused.
pub fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Returns the last component of a path. `None`: the path means the contents of
/// a directory, as `.` does.
pub fn last_component(path: &Path) -> Option<OsString> {
    let bytes = path.as_os_str().as_bytes();
    let mut names = bytes.rsplit(|byte| *byte == b'/');
    match names.find(|name| !name.is_empty()) {
        None | Some(b"." | b"..") => None,
        Some(name) => Some(OsStr::from_bytes(name).to_owned()),
    }
}

fn has_trailing_slash(path: &Path) -> bool {
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
            let target = copy_target(source.as_ref(), destination.as_ref(), is_directory);
            assert_eq!(target.as_os_str(), expected, "{source} {destination}");
        }
    }
}
