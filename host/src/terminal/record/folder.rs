use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// A folder that is being set up. Unless [`keep`](Self::keep) is called, dropping
/// it removes what was created.
pub(super) struct NewFolder<'a> {
    folder: &'a Path,
    /// Whether the folder did not exist before.
    created: bool,
    files: Vec<PathBuf>,
}

impl<'a> NewFolder<'a> {
    /// Creates the folder and its parents with mode 0700. The folder may exist
    /// already.
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

    /// Creates a file with mode 0600. Fails if it exists.
    pub(super) fn create_file(&mut self, name: &str) -> io::Result<File> {
        let path = self.folder.join(name);
        // Not in append mode: masking overwrites earlier bytes.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        self.files.push(path);
        Ok(file)
    }

    /// Keeps the folder and its files.
    pub(super) fn keep(mut self) {
        self.created = false;
        self.files.clear();
    }
}

impl Drop for NewFolder<'_> {
    fn drop(&mut self) {
        // Errors cannot be reported from here.
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        if self.created {
            let _ = fs::remove_dir(self.folder);
        }
    }
}
