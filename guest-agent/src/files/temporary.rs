use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{
        AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, unlinkat,
    },
    io::Errno,
    path::DecInt,
    rand::{GetRandomFlags, getrandom},
};

/// A new file that has no visible name yet. It is removed when this is dropped.
pub(crate) struct TemporaryFile<'d> {
    directory: BorrowedFd<'d>,
    file: OwnedFd,
    /// Its name, on file systems that do not support `O_TMPFILE`.
    name: Option<TemporaryName<'d>>,
}

impl<'d> TemporaryFile<'d> {
    pub(crate) fn new(directory: BorrowedFd<'d>) -> Result<Self, Errno> {
        let private = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        match openat(directory, c".", flags | OFlags::TMPFILE, private) {
            Ok(file) => Ok(Self {
                directory,
                file,
                name: None,
            }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                let (name, file) =
                    TemporaryName::make(directory, |name| openat(directory, name, flags, private))?;
                Ok(Self {
                    directory,
                    file,
                    name: Some(name),
                })
            }
            Err(errno) => Err(errno),
        }
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Gives it a name. Fails with [`Errno::EXIST`] if the name is taken.
    pub(crate) fn publish(&mut self, name: &[u8]) -> Result<(), Errno> {
        match self.name.take() {
            None => link(self.file(), self.directory, name),
            Some(mut own) => {
                let renamed = own.rename_to(self.directory, name, RenameFlags::NOREPLACE);
                self.name = renamed.is_err().then_some(own);
                renamed
            }
        }
    }

    /// Gives it a name, and replaces the file that has it.
    pub(crate) fn replace(&mut self, name: &[u8]) -> Result<(), Errno> {
        let mut own = self.take_name()?;
        own.rename_to(self.directory, name, RenameFlags::empty())
    }

    fn take_name(&mut self) -> Result<TemporaryName<'d>, Errno> {
        match self.name.take() {
            Some(name) => Ok(name),
            None => {
                let make = |name: &[u8]| link(self.file.as_fd(), self.directory, name);
                TemporaryName::make(self.directory, make).map(|(name, ())| name)
            }
        }
    }
}

/// A temporary name in a directory. The entry with this name is removed when this
/// is dropped.
pub(crate) struct TemporaryName<'d> {
    directory: BorrowedFd<'d>,
    /// Empty if there is nothing to remove.
    name: Vec<u8>,
}

/// How many names are tried.
const MAX_ATTEMPTS: u32 = 16;

impl<'d> TemporaryName<'d> {
    /// Calls `make` with random names until one is free.
    pub(crate) fn make<T>(
        directory: BorrowedFd<'d>,
        mut make: impl FnMut(&[u8]) -> Result<T, Errno>,
    ) -> Result<(Self, T), Errno> {
        for _ in 0..MAX_ATTEMPTS {
            let name = random_name()?;
            match make(&name) {
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
                Ok(made) => return Ok((Self { directory, name }, made)),
            }
        }
        Err(Errno::EXIST)
    }

    /// Renames the entry to a permanent name.
    pub(crate) fn rename_to(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        if flags.is_empty() {
            renameat(self.directory, &*self.name, directory, name)?;
        } else {
            renameat_with(self.directory, &*self.name, directory, name, flags)?;
        }
        self.name.clear();
        Ok(())
    }

    /// Returns the name. The entry is not removed any more.
    pub(crate) fn into_name(mut self) -> Vec<u8> {
        core::mem::take(&mut self.name)
    }
}

impl Drop for TemporaryName<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // Another process may have removed it.
            let _ = unlinkat(self.directory, &*self.name, AtFlags::empty());
        }
    }
}

/// Returns `.vmcell-` and sixteen random hexadecimal digits.
pub(crate) fn random_name() -> Result<Vec<u8>, Errno> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let mut name = Vec::from(b".vmcell-");
    for byte in random {
        for digit in [byte >> 4, byte & 0xf] {
            let digit = char::from_digit(u32::from(digit), 16).unwrap_or('0');
            name.extend(u8::try_from(digit));
        }
    }
    Ok(name)
}

/// Gives an open file another name, which must be free.
pub(crate) fn link(
    file: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> Result<(), Errno> {
    match linkat(file, c"", directory, name, AtFlags::EMPTY_PATH) {
        // `AT_EMPTY_PATH` needs CAP_DAC_READ_SEARCH.
        Err(Errno::NOENT) => {
            let from = path_of(file);
            linkat(CWD, &*from, directory, name, AtFlags::SYMLINK_FOLLOW)
        }
        outcome => outcome,
    }
}

/// Returns a path to the entry that a descriptor refers to: proc_pid_fd(5).
pub(crate) fn path_of(descriptor: BorrowedFd<'_>) -> Vec<u8> {
    let mut path = Vec::from(b"/proc/self/fd/");
    path.extend_from_slice(DecInt::from_fd(descriptor).as_bytes());
    path
}
