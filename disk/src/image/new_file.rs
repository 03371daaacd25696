use std::{
    fs::{self, File},
    os::{fd::AsFd as _, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use rustix::{fs::Mode, io::Errno};

use super::error::ImageError;
use vmcell_tree::transfer::{AtomicFile, TempFileKind};

/// A file without a name until it is finished. If dropped before, it is
/// removed.
#[derive(Debug)]
pub(super) struct NewFile {
    unfinished: AtomicFile,
    file: File,
    folder: File,
    path: PathBuf,
}

impl NewFile {
    /// Creates a file that will get the name `path`, which must not exist.
    pub(super) fn create(path: &Path) -> Result<Self, ImageError> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(exists(path));
        }
        let folder = File::open(parent_dir(path)).map_err(ImageError::write(path))?;
        let mode = Mode::from_raw_mode(0o666);
        let unfinished = AtomicFile::create(folder.as_fd(), mode, &mut TempFileKind::detect())
            .map_err(ImageError::write(path))?;
        let file = unfinished.as_fd().try_clone_to_owned();
        Ok(Self {
            file: file.map_err(ImageError::write(path))?.into(),
            unfinished,
            folder,
            path: path.to_owned(),
        })
    }

    /// Returns the file, opened for reading and writing.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, unless that exists by now. After a power loss,
    /// the file is either complete or does not exist.
    pub(super) fn finish(self) -> Result<File, ImageError> {
        let (file, _) = self.name()?;
        Ok(file)
    }

    /// Gives the file its name, unless that exists by now, and syncs the
    /// directory, so that the file survives a power loss.
    pub(super) fn finish_durable(self) -> Result<File, ImageError> {
        let path = self.path.clone();
        let (file, folder) = self.name()?;
        folder.sync_all().map_err(ImageError::write(&path))?;
        Ok(file)
    }

    /// Returns the file and its directory.
    fn name(self) -> Result<(File, File), ImageError> {
        self.file
            .sync_all()
            .map_err(ImageError::write(&self.path))?;
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        match self.unfinished.persist_noclobber(self.folder.as_fd(), name) {
            Ok(()) => Ok((self.file, self.folder)),
            Err(Errno::EXIST) => Err(exists(&self.path)),
            Err(errno) => Err(ImageError::write(&self.path)(errno)),
        }
    }
}

/// Returns the directory of a path.
pub(super) fn parent_dir(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn exists(path: &Path) -> ImageError {
    ImageError::Exists {
        path: path.to_owned(),
    }
}
