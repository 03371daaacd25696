use std::{
    fs::{self, Metadata},
    io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use super::{
    entry::{Content, CopyEntry, CopyKind},
    ignore::Ignore,
    source_tree::SourceTree,
};
use crate::BuildError;

/// The folder whose files a Dockerfile may copy.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Without links.
    root: PathBuf,
    ignore: Ignore,
}

impl Context {
    /// Opens a folder. What its `.dockerignore` names is not there; one beside the Dockerfile
    /// with its name goes before that.
    pub(crate) fn open(folder: &Path, dockerfile: &Path) -> Result<Self, BuildError> {
        let root = folder.canonicalize().map_err(BuildError::read(folder))?;
        let mut own = dockerfile.as_os_str().to_owned();
        own.push(".dockerignore");
        let mut ignore = Ignore::default();
        for path in [PathBuf::from(own), root.join(".dockerignore")] {
            match fs::read_to_string(&path) {
                Ok(text) => {
                    let parsed = Ignore::parse(&text).map_err(io::Error::other);
                    ignore = parsed.map_err(BuildError::read(path))?;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(BuildError::read(path)(error)),
            }
        }
        Ok(Self { root, ignore })
    }

    /// Adds what is in a directory. Returns whether there was something.
    fn walk(
        &self,
        directory: &Path,
        name: &Path,
        found: &mut Vec<CopyEntry>,
    ) -> Result<bool, String> {
        let problem = |error| format!("cannot read {}: {error}", directory.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).map_err(problem)? {
            names.push(entry.map_err(problem)?.file_name());
        }
        names.sort();
        let before = found.len();
        for file in names {
            let (path, name) = (directory.join(&file), name.join(&file));
            let metadata = path.symlink_metadata().map_err(problem)?;
            let is_excluded = self.is_excluded(&path);
            if metadata.is_dir() {
                let at = found.len();
                if is_excluded && !self.ignore.has_exceptions() {
                    continue;
                }
                let has_some = self.walk(&path, &name, found)?;
                if has_some || !is_excluded {
                    found.insert(at, entry(&path, name, &metadata)?);
                }
            } else if !is_excluded {
                found.push(entry(&path, name, &metadata)?);
            }
        }
        Ok(found.len() > before)
    }

    fn is_excluded(&self, path: &Path) -> bool {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        self.ignore.excludes(relative.as_os_str().as_bytes())
    }

    /// Returns where a path leads, which is in the context.
    fn resolve(&self, path: &Path) -> Result<Option<PathBuf>, String> {
        match self.root.join(path).canonicalize() {
            Ok(found) if found.starts_with(&self.root) => Ok(Some(found)),
            Ok(_) => Err(format!("{} leads out of the context", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }
}

impl SourceTree for Context {
    const NAME: &'static str = "the context, or excluded by .dockerignore";

    fn entry(&self, path: &Path) -> Result<Option<CopyEntry>, String> {
        let Some(found) = self.resolve(path)? else {
            return Ok(None);
        };
        let metadata = found.symlink_metadata();
        let metadata =
            metadata.map_err(|error| format!("cannot read {}: {error}", found.display()))?;
        let is_excluded = self.is_excluded(&found) || self.is_excluded(&self.root.join(path));
        // Something in it may be included.
        if is_excluded && !(metadata.is_dir() && self.ignore.has_exceptions()) {
            return Ok(None);
        }
        let name = path.file_name().unwrap_or_default();
        entry(&found, name.into(), &metadata).map(Some)
    }

    fn beneath(&self, directory: &Path) -> Result<Vec<CopyEntry>, String> {
        let mut found = Vec::new();
        if let Some(folder) = self.resolve(directory)? {
            self.walk(&folder, Path::new(""), &mut found)?;
        }
        Ok(found)
    }
}

fn entry(path: &Path, name: PathBuf, metadata: &Metadata) -> Result<CopyEntry, String> {
    let kind = if metadata.is_dir() {
        CopyKind::Directory
    } else if metadata.is_symlink() {
        let target = fs::read_link(path);
        CopyKind::Symlink(
            target.map_err(|error| format!("cannot read {}: {error}", path.display()))?,
        )
    } else if metadata.is_file() {
        CopyKind::File {
            size: metadata.len(),
            content: Content::Host(path.to_owned()),
        }
    } else {
        return Err(format!(
            "{} is no file, directory or link: exclude it with .dockerignore",
            path.display()
        ));
    };
    Ok(CopyEntry {
        name,
        kind,
        mode: metadata.mode() & 0o7777,
        owner: (0, 0),
        modified: u64::try_from(metadata.mtime()).unwrap_or(0),
    })
}
