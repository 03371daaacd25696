use std::{
    ffi::OsStr,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::process::geteuid;

use super::{
    Keeper, Workspace, WorkspaceError, WorkspaceInfo,
    folder::Folder,
    id::{PREFIX, check_id, is_id},
    keeper_messages::KeeperTask,
    lock::FileLock,
    locked::Locked,
    record::Record,
    running, services,
};
use crate::{Vm, error::Error, locate, on_thread::on_thread};

/// The workspaces of a user, below a folder.
#[derive(Clone, Debug)]
pub struct Workspaces {
    pub(super) folder: PathBuf,
    pub(super) keeper: Option<Keeper>,
    pub(super) id_prefix: String,
}

/// The folder of the workspaces that are not kept apart.
const WORKSPACES: &str = "workspaces";

/// How the names of folders begin that are being removed.
const DELETED: &str = ".deleted-";

/// Its time is that of the last list.
const LISTED: &str = "listed";

/// Held while a folder is created or removed, and while a name is given.
const LOCK: &str = "lock";

/// The files beside the folders of the workspaces.
pub(super) const FILES: [&str; 2] = [LISTED, LOCK];

impl Workspaces {
    /// Opens those of this user: below `$XDG_STATE_HOME/vmcell`, or
    /// `~/.local/state/vmcell`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is neither, and as for [`at`](Self::at).
    pub fn open() -> Result<Self, Error> {
        Self::at(state_folder()?)
    }

    /// Opens workspaces of this user that are kept apart from the others, in a folder beside
    /// theirs: neither are seen by who opens the other ones. `vmcell vm` has its VMs in
    /// `vms`.
    ///
    /// # Errors
    /// As for [`open`](Self::open), and [`Error::Invalid`] unless the name of the folder
    /// consists of lower-case letters, digits and hyphens.
    pub fn open_apart(name: &str) -> Result<Self, Error> {
        check_id(name)?;
        Self::in_folder(state_folder()?.join(name))
    }

    /// As [`open`](Self::open), but `None` if this user never had any: no folder is created.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_existing() -> Result<Option<Self>, Error> {
        Self::existing(WORKSPACES)
    }

    /// As [`open_apart`](Self::open_apart), but `None` if this user never had any: no folder
    /// is created.
    ///
    /// # Errors
    /// As for [`open_apart`](Self::open_apart).
    pub fn open_existing_apart(name: &str) -> Result<Option<Self>, Error> {
        check_id(name)?;
        Self::existing(name)
    }

    fn existing(name: &str) -> Result<Option<Self>, Error> {
        let folder = state_folder()?.join(name);
        folder.is_dir().then(|| Self::in_folder(folder)).transpose()
    }

    /// Opens those below a folder, which is created if it is not there.
    ///
    /// # Errors
    /// [`Error::Host`] if it cannot be created, [`Error::BadFile`] if it belongs to another
    /// user, who could replace what is in it.
    pub fn at(root: impl AsRef<Path>) -> Result<Self, Error> {
        Self::in_folder(root.as_ref().join(WORKSPACES))
    }

    fn in_folder(folder: PathBuf) -> Result<Self, Error> {
        const DOING: &str = "make the folder of the workspaces";
        let folder = std::path::absolute(folder).map_err(Error::host(DOING))?;
        let mut builder = DirBuilder::new();
        let created = builder.recursive(true).mode(0o700).create(&folder);
        created.map_err(Error::host(DOING))?;
        let metadata = fs::metadata(&folder).map_err(Error::host(DOING))?;
        if metadata.uid() != geteuid().as_raw() {
            return Err(Error::BadFile {
                what: "folder of workspaces",
                path: folder,
                reason: "belongs to another user".to_owned(),
            });
        }
        Ok(Self {
            folder,
            keeper: None,
            id_prefix: PREFIX.to_owned(),
        })
    }

    /// Sets how the ids begin that are made for workspaces without one: `ws` by default, as
    /// in `ws-abcdefghjkmn`.
    #[must_use]
    pub fn id_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.id_prefix = prefix.into();
        self
    }

    /// Sets the program that runs the workspaces which are started from now on. They go on
    /// when this program ends. By default they run in this program, and stop with it.
    #[must_use]
    pub fn keeper(mut self, keeper: Keeper) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// Starts a workspace that is stopped.
    pub(super) async fn run(&self, locked: Locked) -> Result<Vm, Error> {
        let id = locked.record.id.clone();
        match &self.keeper {
            None => Ok(running::start(locked).await?.vm),
            Some(keeper) => {
                keeper.start(locked, KeeperTask::Start, None).await?;
                Workspace::new(self.clone(), id).attach_vm().await
            }
        }
    }

    /// Finds a workspace by its id or its name. One whose files are damaged is found by its
    /// id, so that it can be [deleted](Workspace::delete).
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`]
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn get(&self, id_or_name: &str) -> Result<Workspace, Error> {
        let this = self.clone();
        let wanted = id_or_name.to_owned();
        let id = on_thread("look for the workspace", move || {
            let not_found = WorkspaceError::NotFound { id: wanted.clone() };
            // No other one has it as its name. One that is damaged can be deleted.
            if is_id(&wanted) && !matches!(this.of(&wanted).read(), Ok(None)) {
                return Ok(wanted);
            }
            let has_name = |record: &Record| record.name.as_deref() == Some(&wanted);
            let found = this.records().find(has_name);
            found.map(|record| record.id).ok_or(not_found.into())
        });
        Ok(Workspace::new(self.clone(), id.await?))
    }

    /// Returns all workspaces, those that were used last first. Ones whose files are
    /// damaged or of a newer version are [left out](Self::unreadable). Of those that
    /// were paused for want of use, it says which were since the last list.
    ///
    /// # Errors
    /// [`Error::Host`] if the folder cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(&self) -> Result<Vec<WorkspaceInfo>, Error> {
        let listed = self.folder.join(LISTED);
        let now = SystemTime::now();
        let last = fs::metadata(&listed).and_then(|metadata| metadata.modified());
        // Somebody has set the clock back if it was in the future.
        let last = last.ok().filter(|last| *last <= now);
        let mut list = self.list_unmarked().await?;
        services::add_counts(self, &mut list).await;
        for info in &mut list {
            // Those before the first list are new.
            let is_new = |paused| last.is_none_or(|last| (last..=now).contains(&paused));
            info.is_newly_paused = info.is_paused_automatically && info.paused.is_some_and(is_new);
        }
        let mut options = fs::OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(listed);
        if let Err(error) = file.and_then(|file| file.set_modified(now)) {
            // The list is right nevertheless.
            tracing::warn!(%error, "cannot record when the workspaces were listed");
        }
        Ok(list)
    }

    /// Returns the ids of the workspaces that [`list`](Self::list) leaves out, and why. They
    /// can be [deleted](Workspace::delete).
    ///
    /// # Errors
    /// [`Error::Host`] if the folder cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn unreadable(&self) -> Result<Vec<(String, WorkspaceError)>, Error> {
        let this = self.clone();
        on_thread("list the workspaces", move || {
            let unreadable = |id: String| Some((id.clone(), this.of(&id).read().err()?));
            Ok(this.ids().filter_map(unreadable).collect())
        })
        .await
    }

    async fn list_unmarked(&self) -> Result<Vec<WorkspaceInfo>, Error> {
        let this = self.clone();
        on_thread("list the workspaces", move || {
            if let Ok(Some(_lock)) = FileLock::try_take(&this.folder.join(LOCK)) {
                this.sweep();
            }
            let mut list: Vec<_> = this.records().map(|record| this.info(record)).collect();
            list.sort_by(|a, b| {
                let by_activity = b.last_activity.cmp(&a.last_activity);
                by_activity.then_with(|| a.id.cmp(&b.id))
            });
            Ok(list)
        })
        .await
    }

    /// Deletes the workspaces whose time is over, such as those whose program has died
    /// before it could do it. Returns their ids.
    ///
    /// # Errors
    /// As for [`Workspace::delete`].
    ///
    /// # Cancel safety
    /// If the future is dropped, only some may be deleted.
    pub async fn reap_expired(&self) -> Result<Vec<String>, Error> {
        let now = SystemTime::now();
        let mut reaped = Vec::new();
        for info in self.list_unmarked().await? {
            if info.expires.is_some_and(|expires| expires <= now) {
                let workspace = Workspace::new(self.clone(), info.id.clone());
                match workspace.delete_expired().await {
                    // Its own program was faster.
                    Ok(true) | Err(Error::Workspace(WorkspaceError::NotFound { .. })) => {
                        reaped.push(info.id);
                    }
                    Ok(false) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(reaped)
    }

    /// The workspaces that a folder is among.
    pub(super) fn around(folder: &Folder) -> Self {
        let parent = folder.path().parent().unwrap_or(Path::new("/"));
        Self {
            folder: parent.to_owned(),
            keeper: None,
            id_prefix: PREFIX.to_owned(),
        }
    }

    /// Returns the folder of a workspace.
    pub(super) fn of(&self, id: &str) -> Folder {
        Folder::new(self.folder.join(id))
    }

    pub(super) fn info(&self, record: Record) -> WorkspaceInfo {
        let folder = self.of(&record.id);
        WorkspaceInfo::new(record, &folder)
    }

    /// Waits until nobody else creates or removes folders, or gives names.
    pub(super) fn lock(&self) -> Result<FileLock, Error> {
        const DOING: &str = "lock the workspaces";
        let lock = FileLock::wait(&self.folder.join(LOCK)).map_err(Error::host(DOING))?;
        // Nobody removes the file.
        lock.ok_or_else(|| Error::host(DOING)(io::ErrorKind::NotFound.into()))
    }

    /// Fails if a workspace has the id, or has it as its name. The caller has the
    /// [lock](Self::lock).
    pub(super) fn check_id_is_free(&self, id: &str) -> Result<(), Error> {
        // Also if it is not the folder of a workspace.
        match fs::symlink_metadata(self.of(id).path()) {
            Ok(_) => Err(WorkspaceError::IdTaken { id: id.to_owned() }.into()),
            Err(_) => self.check_name_is_free(id, id),
        }
    }

    /// Fails if a workspace other than `id` has the name, or has it as its id. The caller
    /// has the [lock](Self::lock).
    pub(super) fn check_name_is_free(&self, name: &str, id: &str) -> Result<(), Error> {
        if self.ids().any(|other| other == name && other != id) {
            let id = name.to_owned();
            return Err(WorkspaceError::IdTaken { id }.into());
        }
        let taken = |id: String| WorkspaceError::NameTaken {
            name: name.to_owned(),
            id,
        };
        let is_other = |record: &Record| record.id != id && record.name.as_deref() == Some(name);
        if let Some(other) = self.records().find(is_other) {
            return Err(taken(other.id).into());
        }
        let creating = self
            .ids()
            .find(|other| other != id && self.of(other).reserved_name().as_deref() == Some(name));
        creating.map_or(Ok(()), |other| Err(taken(other).into()))
    }

    /// Removes the folder of a workspace as a whole.
    pub(super) fn remove(&self, folder: &Folder, id: &str) -> io::Result<()> {
        let deleted = self.folder.join(format!("{DELETED}{id}"));
        // Of an earlier one with the same id.
        match fs::remove_dir_all(&deleted) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(folder.path(), &deleted)?;
        fs::remove_dir_all(deleted)
    }

    /// Removes what programs have left behind that died while they created or removed a
    /// workspace, and nothing else. The caller has the [lock](Self::lock).
    pub(super) fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let begins = |with: &str| name.as_encoded_bytes().starts_with(with.as_bytes());
            let is_abandoned = || {
                let folder = Folder::new(entry.path());
                name.to_str().is_some_and(is_id) && folder.is_abandoned()
            };
            if begins(DELETED) || begins(Folder::BEGUN) || is_abandoned() {
                let removed = fs::remove_dir_all(entry.path());
                tracing::info!(name = %name.display(), ?removed, "removed what was left of a workspace");
            }
        }
    }

    /// Returns the ids of all workspaces, also of those that are being created or damaged.
    pub(super) fn ids(&self) -> impl Iterator<Item = String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        let names = names.filter_map(|name| OsStr::to_str(&name).map(str::to_owned));
        names.filter(|name| is_id(name) && self.of(name).is_of_workspace())
    }

    /// Returns what is written down about all workspaces.
    fn records(&self) -> impl Iterator<Item = Record> {
        self.ids().filter_map(|id| match self.of(&id).read() {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(%error, "a workspace cannot be read");
                None
            }
        })
    }
}

/// Returns where the files of this user are that are kept.
fn state_folder() -> Result<PathBuf, Error> {
    locate::state_folder().ok_or_else(|| Error::Missing {
        what: "the user's state folder",
        remedy: "set XDG_STATE_HOME or HOME".to_owned(),
    })
}
