use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// A folder that is being filled. What was made in it goes again, if it is not
/// finished.
pub(super) struct NewFolder<'a> {
    folder: &'a Path,
    /// Whether it was not there before.
    created: bool,
    files: Vec<PathBuf>,
}

impl<'a> NewFolder<'a> {
    /// Makes the folder, and those that it is in, for nobody else to read. It
    /// may be there already.
    pub(super) fn create(folder: &'a Path) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        if let Some(parent) = folder.parent() {
            builder.recursive(true).create(parent)?;
        }
        let created = match builder.recursive(false).create(folder) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => false,
            Err(error) => return Err(error),
        };
        Ok(Self {
            folder,
            created,
            files: Vec::new(),
        })
    }

    /// Makes a file that must not be there, for nobody else to read.
    pub(super) fn create_file(&mut self, name: &str) -> io::Result<File> {
        let path = self.folder.join(name);
        // Not to append: what is there may have to be overwritten.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        self.files.push(path);
        Ok(file)
    }

    /// It is complete, and stays.
    pub(super) fn keep(mut self) {
        self.created = false;
        self.files.clear();
    }
}

impl Drop for NewFolder<'_> {
    fn drop(&mut self) {
        // There is nobody to tell if that fails too.
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        if self.created {
            let _ = fs::remove_dir(self.folder);
        }
    }
}
