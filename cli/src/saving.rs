//! Files of ours.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

/// Writes a file: all of it, or nothing.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A device or a pipe is written to and not replaced.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, bytes);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Nobody else may read it: it tells what a guest worked on.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_a_device_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for text in ["first", "second"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let missing = folder.path().join("missing/file");
        assert!(write(&missing, b"text").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
