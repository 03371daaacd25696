use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile};

use super::error::ImageError;

/// A file that is not there until it is finished. Dropped before, nothing is
/// left of it.
#[derive(Debug)]
pub(super) struct NewFile {
    file: NamedTempFile,
    folder: File,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file that will be at `path`, where nothing may be.
    pub(super) fn create(path: &Path) -> Result<Self, ImageError> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(exists(path));
        }
        let folder = folder_of(path);
        let file = Builder::new()
            .prefix(".unfinished-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(ImageError::write(path))?;
        Ok(Self {
            file,
            folder: File::open(folder).map_err(ImageError::write(path))?,
            path: path.to_owned(),
        })
    }

    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives the file its name, unless something took it meanwhile. After a loss
    /// of power it is there as a whole or not at all.
    pub(super) fn finish(self) -> Result<File, ImageError> {
        let (file, _) = self.name()?;
        Ok(file)
    }

    /// Gives the file its name, unless something took it meanwhile, and waits
    /// until no loss of power can take it away again.
    pub(super) fn finish_for_good(self) -> Result<File, ImageError> {
        let path = self.path.clone();
        let (file, folder) = self.name()?;
        folder.sync_all().map_err(ImageError::write(&path))?;
        Ok(file)
    }

    /// The file, and the folder that it now is in.
    fn name(self) -> Result<(File, File), ImageError> {
        let Self { file, folder, path } = self;
        file.as_file()
            .sync_all()
            .map_err(ImageError::write(&path))?;
        let file = file
            .persist_noclobber(&path)
            .map_err(|failure| match failure.error.kind() {
                io::ErrorKind::AlreadyExists => exists(&path),
                _ => ImageError::write(&path)(failure.error),
            })?;
        Ok((file, folder))
    }
}

/// The folder that a new file will be in.
pub(super) fn folder_of(path: &Path) -> &Path {
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
