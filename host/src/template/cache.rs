use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::PathBuf,
    sync::Arc,
    time::SystemTime,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::retry_on_intr,
};

use super::{
    Template, TemplateInfo,
    recent::{self, FolderId},
};
use crate::{
    error::Error,
    locate,
    snapshot::{LoadedSnapshot, Summary, remove_whole},
};

/// The folder with the templates of a user.
#[derive(Clone, Debug)]
pub(super) struct TemplateCache {
    folder: PathBuf,
}

/// A template that nobody else makes or removes.
#[derive(Debug)]
pub(super) struct Locked {
    _lock: File,
    lock_path: PathBuf,
    template: PathBuf,
}

/// How the names of templates begin that nobody has named.
pub(super) const AUTOMATIC: &str = "auto-";

const LOCK: &str = ".lock";

impl TemplateCache {
    pub(super) fn of_user() -> Result<Self, Error> {
        let cache = locate::cache_folder().ok_or_else(|| Error::Missing {
            what: "the user's cache folder",
            remedy: "set XDG_CACHE_HOME or HOME".to_owned(),
        })?;
        let folder = cache.join("templates");
        let created = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
        created.map_err(Error::host("make the folder of templates"))?;
        Ok(Self { folder })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Loads a template, if it is there and has this key. One that cannot be used is as
    /// one that is not there.
    pub(super) fn load(&self, name: &str, key: &str) -> Option<Arc<LoadedSnapshot>> {
        let path = self.path(name);
        let folder = FolderId::of(&path).ok()?;
        let loaded = match recent::find(&path, folder) {
            Some(loaded) => loaded,
            None => match LoadedSnapshot::open(&path, None) {
                Ok(loaded) => Arc::new(loaded),
                Err(error) => {
                    tracing::info!(%error, "a template is made again");
                    return None;
                }
            },
        };
        if loaded.guest.template.as_deref() != Some(key) {
            return None;
        }
        recent::keep(path, folder, loaded.clone());
        self.mark_used(name);
        Some(loaded)
    }

    /// Waits until nobody else makes or removes the template.
    pub(super) fn lock(&self, name: &str) -> Result<Locked, Error> {
        self.try_lock(name)
            .map_err(Error::host("lock the template"))
    }

    fn try_lock(&self, name: &str) -> io::Result<Locked> {
        let path = self.folder.join(format!("{name}{LOCK}"));
        loop {
            let mut options = fs::OpenOptions::new();
            let lock = options
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive))?;
            // Whoever removes a template removes the file, too.
            let is_same = fs::metadata(&path)
                .is_ok_and(|current| lock.metadata().is_ok_and(|own| own.ino() == current.ino()));
            if is_same {
                return Ok(Locked {
                    _lock: lock,
                    lock_path: path,
                    template: self.path(name),
                });
            }
        }
    }

    fn mark_used(&self, name: &str) {
        let path = self.folder.join(format!("{name}{LOCK}"));
        let marked = File::options().write(true).open(path);
        let marked = marked.and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = marked {
            tracing::debug!(%error, name, "cannot record the use of a template");
        }
    }

    /// Returns the templates that are whole, by name.
    pub(super) fn list(&self) -> Vec<TemplateInfo> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut list: Vec<_> = names
            .filter(|name| checked_name(name).is_ok() && !name.ends_with(LOCK))
            .filter_map(|name| self.info(name))
            .collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    /// Returns a template that is about to be used.
    pub(super) fn find(&self, name: String) -> Option<TemplateInfo> {
        self.mark_used(&name);
        self.info(name)
    }

    fn info(&self, name: String) -> Option<TemplateInfo> {
        let path = self.path(&name);
        let summary = Summary::read(&path).ok()?;
        let lock = fs::metadata(self.folder.join(format!("{name}{LOCK}")));
        let used = lock.and_then(|lock| lock.modified());
        Some(TemplateInfo {
            name,
            path,
            image: summary.image,
            vcpus: summary.vcpus,
            memory_mib: summary.memory_mib,
            bytes: summary.bytes,
            created: summary.created,
            used: used.unwrap_or(summary.created),
        })
    }

    /// Removes a template. Returns whether there was one.
    pub(super) fn remove(&self, name: &str) -> Result<bool, Error> {
        match self.path(name).exists() {
            true => self.lock(name)?.clear(),
            false => Ok(false),
        }
    }

    /// Removes the templates that are not wanted. Returns them.
    pub(super) fn prune(
        &self,
        is_unwanted: impl Fn(&TemplateInfo) -> bool,
    ) -> Result<Vec<TemplateInfo>, Error> {
        let mut removed = Vec::new();
        for info in self.list() {
            if is_unwanted(&info) && self.remove(&info.name)? {
                removed.push(info);
            }
        }
        Ok(removed)
    }

    /// Removes templates that nobody has named and that were not used for long.
    pub(super) fn prune_automatic(&self) {
        let pruned = self.prune(|info| {
            info.name.starts_with(AUTOMATIC) && info.is_unused_for(Template::KEPT_UNUSED)
        });
        if let Err(error) = pruned {
            tracing::warn!(%error, "cannot remove old templates");
        }
    }
}

impl Locked {
    /// Returns whether there is a template.
    pub(super) fn has_template(&self) -> bool {
        self.template.exists()
    }

    /// Removes the template. Returns whether there was one.
    pub(super) fn clear(&self) -> Result<bool, Error> {
        recent::forget(&self.template);
        let removed = remove_whole(&self.template);
        removed.map_err(Error::host("remove the template"))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if !self.has_template() {
            // Those who wait for the lock notice that it is another file.
            let _ = fs::remove_file(&self.lock_path);
        }
    }
}

/// Returns the name if it can be one of a template.
pub(super) fn checked_name(name: &str) -> Result<&str, Error> {
    let is_valid = (1..=64).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    match is_valid {
        true => Ok(name),
        false => Err(Error::Invalid(format!(
            "{name:?} cannot be the name of a template: use 1 to 64 letters, digits, dots, \
             hyphens and underscores"
        ))),
    }
}
