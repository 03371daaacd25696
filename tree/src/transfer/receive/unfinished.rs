use std::{
    fmt::Write as _,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, RenameFlags, access, linkat, openat, renameat, renameat_with,
        unlinkat,
    },
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

/// How files are kept out of sight until they are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scratch {
    /// They have no name, so not even a killed program leaves anything.
    Unnamed,
    /// They have a name that nobody guesses, for file systems without
    /// `O_TMPFILE`.
    Named,
}

impl Scratch {
    /// Returns the best that this machine supports.
    #[expect(clippy::new_without_default, reason = "it asks the system")]
    pub fn new() -> Self {
        // A file without a name gets one through its link there: open(2).
        match access("/proc/self/fd", rustix::fs::Access::EXISTS) {
            Ok(()) => Self::Unnamed,
            Err(_) => Self::Named,
        }
    }
}

/// A file that is being written. Dropped, it is gone.
#[derive(Debug)]
pub struct Unfinished {
    file: OwnedFd,
    /// Where to remove it, if it has a name.
    named: Option<(OwnedFd, String)>,
}

impl Unfinished {
    /// Makes an empty file that will be in this directory.
    pub fn create(
        directory: BorrowedFd<'_>,
        mode: Mode,
        scratch: &mut Scratch,
    ) -> Result<Self, Errno> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        if *scratch == Scratch::Unnamed {
            match openat(directory, ".", flags | OFlags::TMPFILE, mode) {
                Ok(file) => return Ok(Self { file, named: None }),
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => *scratch = Scratch::Named,
                Err(errno) => return Err(errno),
            }
        }
        let name = unguessable_name()?;
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(directory, &name, flags, mode)?;
        let directory = directory
            .try_clone_to_owned()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(Self {
            file,
            named: Some((directory, name)),
        })
    }

    /// Borrows its descriptor.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Gives it its name, in the directory that it was made in. A file or link
    /// that has the name is replaced.
    pub fn publish(mut self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        let Some((_, scratch_name)) = &self.named else {
            return link(self.file.as_fd(), directory, name);
        };
        renameat(directory, scratch_name, directory, name)?;
        self.named = None;
        Ok(())
    }
}

impl Unfinished {
    /// Gives it its name, unless something has it.
    pub fn publish_new(mut self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        match &self.named {
            None => link_new(self.file.as_fd(), directory, name)?,
            Some((_, scratch_name)) => renameat_with(
                directory,
                scratch_name,
                directory,
                name,
                RenameFlags::NOREPLACE,
            )?,
        }
        self.named = None;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some((directory, name)) = &self.named {
            // Nobody is left to be told.
            let _ = unlinkat(directory, name, AtFlags::empty());
        }
    }
}

/// Gives an open file a name. A file or link that has it is replaced.
pub(super) fn link(
    file: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> Result<(), Errno> {
    make_or_replace(directory, name, |name| link_new(file, directory, name))
}

fn link_new(file: BorrowedFd<'_>, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, &path, directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// Makes something that has a name. What has it already is replaced at once.
pub(super) fn make_or_replace(
    directory: BorrowedFd<'_>,
    name: &[u8],
    make: impl Fn(&[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    match make(name) {
        Err(Errno::EXIST) => {}
        other => return other,
    }
    let scratch_name = unguessable_name()?;
    make(scratch_name.as_bytes())?;
    let renamed = renameat(directory, &scratch_name, directory, name);
    // It is still there if that failed, and also if both are names of the same
    // file, in which case rename(2) does nothing.
    let _ = unlinkat(directory, &scratch_name, AtFlags::empty());
    renamed
}

fn unguessable_name() -> Result<String, Errno> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
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
            Unfinished::create(directory.as_fd(), mode, &mut Scratch::Named).unwrap()
        };
        let names = || fs::read_dir(folder.path()).unwrap().count();

        drop(create());
        assert_eq!(names(), 0);
        for content in [&b"first"[..], b"second"] {
            let file = create();
            write(file.as_fd(), content).unwrap();
            file.publish(directory.as_fd(), b"file").unwrap();
            assert_eq!(fs::read(folder.path().join("file")).unwrap(), content);
            assert_eq!(names(), 1);
        }
        {
            let published = create().publish_new(directory.as_fd(), b"file");
            assert_eq!(published, Err(Errno::EXIST));
            create().publish_new(directory.as_fd(), b"new").unwrap();
            fs::remove_file(folder.path().join("new")).unwrap();
        }
        fs::create_dir(folder.path().join("directory")).unwrap();
        let published = create().publish(directory.as_fd(), b"directory");
        assert_eq!(published, Err(Errno::ISDIR));
        assert_eq!(names(), 2);
    }
}
