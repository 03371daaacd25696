use std::{
    fmt::Write as _,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat},
    io::Errno,
};

use crate::transfer::platform::platform;

/// How incomplete files are hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TempFileKind {
    /// They have no name (`O_TMPFILE` of Linux), so even a killed program leaves
    /// nothing behind.
    Unnamed,
    /// They have a random name, for systems and file systems without
    /// `O_TMPFILE`.
    Named,
}

impl TempFileKind {
    /// Returns the best kind that this machine supports.
    pub fn detect() -> Self {
        match platform().has_unnamed_files() {
            true => Self::Unnamed,
            false => Self::Named,
        }
    }
}

/// A file that appears under its name only when it is complete. Dropping it
/// before that removes it.
#[derive(Debug)]
pub struct AtomicFile {
    file: OwnedFd,
    /// The directory and the temporary name, if it has one.
    named: Option<(OwnedFd, String)>,
}

impl AtomicFile {
    /// Creates an empty file for this directory. Changes `kind` if the file
    /// system has no `O_TMPFILE`.
    pub fn create(
        directory: BorrowedFd<'_>,
        mode: Mode,
        kind: &mut TempFileKind,
    ) -> Result<Self, Errno> {
        if *kind == TempFileKind::Unnamed {
            match platform().create_unnamed(directory, mode) {
                Ok(file) => return Ok(Self { file, named: None }),
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => *kind = TempFileKind::Named,
                Err(errno) => return Err(errno),
            }
        }
        let name = random_name()?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::RDWR | OFlags::CLOEXEC;
        let file = openat(directory, &name, flags, mode)?;
        let directory = directory
            .try_clone_to_owned()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(Self {
            file,
            named: Some((directory, name)),
        })
    }

    /// Returns its descriptor.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Gives the file its name, in the directory in which it was created.
    /// Replaces a file or link with that name.
    pub fn persist(mut self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        let Some((_, temp_name)) = &self.named else {
            return create_or_replace(directory, name, |name| {
                platform().link_unnamed(self.file.as_fd(), directory, name)
            });
        };
        renameat(directory, temp_name, directory, name)?;
        self.named = None;
        Ok(())
    }

    /// Gives the file its name, and fails with `EEXIST` if the name is taken.
    pub fn persist_noclobber(
        mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
    ) -> Result<(), Errno> {
        match &self.named {
            None => platform().link_unnamed(self.file.as_fd(), directory, name)?,
            Some((_, temp_name)) => {
                platform().rename_noreplace(directory, temp_name.as_bytes(), name)?;
            }
        }
        self.named = None;
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((directory, name)) = &self.named {
            // There is nobody to report an error to.
            let _ = unlinkat(directory, name, AtFlags::empty());
        }
    }
}

/// Creates an entry with a name. Replaces an existing one atomically.
pub(in crate::transfer) fn create_or_replace(
    directory: BorrowedFd<'_>,
    name: &[u8],
    create: impl Fn(&[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    match create(name) {
        Err(Errno::EXIST) => {}
        other => return other,
    }
    let temp_name = random_name()?;
    create(temp_name.as_bytes())?;
    let renamed = renameat(directory, &temp_name, directory, name);
    // The temporary name still exists if the rename failed, and also if both
    // are names of the same file: then rename(2) does nothing.
    let _ = unlinkat(directory, &temp_name, AtFlags::empty());
    renamed
}

/// Returns a name for a temporary file.
pub(in crate::transfer) fn random_name() -> Result<String, Errno> {
    let mut bytes = [0; 16];
    platform().fill_random(&mut bytes)?;
    let mut name = String::from(".vmcell-");
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::{fs::open, io::write};

    use super::*;

    #[test]
    fn without_unnamed_files_a_name_that_nobody_guesses_does() {
        let folder = tempfile::tempdir().unwrap();
        let directory = open(folder.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        let create = || {
            let mode = Mode::RUSR | Mode::WUSR;
            AtomicFile::create(directory.as_fd(), mode, &mut TempFileKind::Named).unwrap()
        };
        let names = || fs::read_dir(folder.path()).unwrap().count();

        drop(create());
        assert_eq!(names(), 0);
        for content in [&b"first"[..], b"second"] {
            let file = create();
            write(file.as_fd(), content).unwrap();
            file.persist(directory.as_fd(), b"file").unwrap();
            assert_eq!(fs::read(folder.path().join("file")).unwrap(), content);
            assert_eq!(names(), 1);
        }
        let persisted = create().persist_noclobber(directory.as_fd(), b"file");
        assert_eq!(persisted, Err(Errno::EXIST));
        let persisted = create().persist_noclobber(directory.as_fd(), b"new");
        assert_eq!(persisted, Ok(()));
        fs::remove_file(folder.path().join("new")).unwrap();
        fs::create_dir(folder.path().join("directory")).unwrap();
        let persisted = create().persist(directory.as_fd(), b"directory");
        assert_eq!(persisted, Err(Errno::ISDIR));
        assert_eq!(names(), 2);
    }
}
