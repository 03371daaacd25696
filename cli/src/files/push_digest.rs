//! Digests of files on this machine.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::digest::PartsDigest;

/// Adds the names, modes and contents of a file, or of a directory with
/// everything below it. Times and owners do not matter.
pub(super) fn add_tree(digest: &mut PartsDigest, top: &Path) -> io::Result<()> {
    let mut pending = vec![PathBuf::new()];
    while let Some(name) = pending.pop() {
        let path = match name.as_os_str().is_empty() {
            true => top.to_owned(),
            false => top.join(&name),
        };
        let metadata = fs::symlink_metadata(&path)?;
        digest.add("name", name.as_os_str().as_bytes());
        add_entry(digest, &path, &metadata)?;
        if metadata.is_dir() {
            let entries = fs::read_dir(&path)?;
            let mut below = entries
                .map(|entry| Ok(name.join(entry?.file_name())))
                .collect::<io::Result<Vec<_>>>()?;
            below.sort();
            pending.append(&mut below);
        }
    }
    Ok(())
}

fn add_entry(digest: &mut PartsDigest, path: &Path, metadata: &Metadata) -> io::Result<()> {
    let mode = metadata.permissions().mode().to_le_bytes();
    if metadata.is_symlink() {
        digest.add("link", fs::read_link(path)?.as_os_str().as_bytes());
    } else if metadata.is_file() {
        digest.add("file", mode);
        digest.add("content", content_digest(path)?);
    } else {
        // Its type is in the mode. Only directories are pushed.
        digest.add("other", mode);
    }
    Ok(())
}

fn content_digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finalize().into()),
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::symlink,
        time::{Duration, SystemTime},
    };

    use super::*;

    fn of(path: &Path) -> String {
        let mut digest = PartsDigest::default();
        add_tree(&mut digest, path).unwrap();
        digest.finish()
    }

    #[test]
    fn names_modes_and_contents_count_and_times_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let make = |mode: u32, content: &str, target: &str| {
            for name in ["sub", "link"] {
                let _ = fs::remove_dir_all(path(name));
                let _ = fs::remove_file(path(name));
            }
            fs::create_dir(path("sub")).unwrap();
            fs::write(path("sub/file"), content).unwrap();
            fs::set_permissions(path("sub/file"), fs::Permissions::from_mode(mode)).unwrap();
            symlink(target, path("link")).unwrap();
            of(folder.path())
        };
        let first = make(0o644, "a", "sub");
        assert_eq!(make(0o644, "a", "sub"), first);
        let later = SystemTime::now() + Duration::from_secs(1000);
        let file = File::options().write(true).open(path("sub/file")).unwrap();
        file.set_modified(later).unwrap();
        assert_eq!(of(folder.path()), first);

        assert_ne!(make(0o755, "a", "sub"), first);
        assert_ne!(make(0o644, "b", "sub"), first);
        assert_ne!(make(0o644, "a", "nowhere"), first);
        make(0o644, "a", "sub");
        fs::rename(path("sub/file"), path("file")).unwrap();
        assert_ne!(of(folder.path()), first);
        assert_ne!(of(&path("file")), of(&path("sub")));
    }
}
