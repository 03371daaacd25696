use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io, iter,
    ops::ControlFlow,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use rustix::{fs::statvfs, process::geteuid};

use super::{
    WorkspaceError, WorkspaceState,
    history::History,
    layers::LayerMerge,
    lock::FileLock,
    record::{NEW, OWNER_DIED, PreparedRecord, Record},
    secrets::KeptSecrets,
};
use crate::{
    disk::image::{
        Format, Image, ImageError, Layer, OpenOptions, create_child_of_size, merge_layers,
    },
    error::Error,
    on_thread::on_thread,
    snapshot::{hide, remove_abandoned, remove_whole},
};

/// The folder of a workspace.
///
/// ```text
///  ws-…/            mode 0700
///  ├── workspace.json   its record; without it, the workspace is being created
///  ├── name             the name that it gets, while it is being created
///  ├── changes.lock     held by who changes it
///  ├── owner.lock       held by the program that runs its VM
///  ├── activity         its time is that of the last use
///  ├── keeper.log       messages of the program that keeps it running
///  ├── spare            takes the room that the record of its end may need
///  ├── image.ext4       the image, if it could be linked
///  ├── history/         a file for each command
///  ├── memory/          the memory of its VM, while it is paused
///  ├── secrets/         a file for each secret that it keeps
///  └── layers/1.qcow2 … its disk
/// ```
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// How long to wait for the end of a VMM that was killed, and between two looks.
const VMM_END_TIMEOUT: Duration = Duration::from_secs(10);
const VMM_END_INTERVAL: Duration = Duration::from_millis(5);

const RECORD: &str = "workspace.json";
const KEEPER_LOG: &str = "keeper.log";
const NAME: &str = "name";
const IMAGE: &str = "image.ext4";
const ACTIVITY: &str = "activity";
const HISTORY: &str = "history";
const MEMORY: &str = "memory";
const SECRETS: &str = "secrets";
const LAYERS: &str = "layers";
/// The file that layers are merged into, in the folder of the layers.
const MERGED: &str = "merged.qcow2";
/// A layer that is not used yet, in the same folder.
const PREPARED: &str = "prepared.qcow2";
const CHANGES_LOCK: &str = "changes.lock";
const OWNER_LOCK: &str = "owner.lock";

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// How the name of a folder begins that is being created.
    pub(super) const BEGUN: &str = ".new-";

    /// Creates the folder of a new workspace, which nobody sees before its record is
    /// written. It has its lock from the beginning, so that it is not taken for the folder
    /// of somebody else, or for one that was abandoned.
    pub(super) fn create(path: PathBuf) -> Result<(Self, FileLock), Error> {
        const DOING: &str = "make the folder of the workspace";
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput);
        let mut begun = OsString::from(Self::BEGUN);
        begun.push(name.map_err(|kind| Error::host(DOING)(kind.into()))?);
        let begun = path.with_file_name(begun);
        let mut builder = DirBuilder::new();
        let created = builder.mode(0o700).create(&begun);
        created.map_err(Error::host(DOING))?;
        let fill = || {
            builder.create(begun.join(LAYERS))?;
            let lock = FileLock::try_take(&begun.join(CHANGES_LOCK))?;
            fs::rename(&begun, &path)?;
            lock.ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))
        };
        let lock = fill().inspect_err(|_| remove_folder(&begun));
        let lock = lock.map_err(Error::host(DOING))?;
        Ok((Self { path }, lock))
    }

    /// Returns whether it is the folder of a workspace, and not of somebody else. A copy
    /// may lack the lock.
    pub(super) fn is_of_workspace(&self) -> bool {
        self.changes_lock().is_file() || !self.has_no_record()
    }

    /// Returns whether a program that died has begun to create it.
    pub(super) fn is_abandoned(&self) -> bool {
        self.has_no_record()
            && self.changes_lock().is_file()
            && !FileLock::is_held(&self.changes_lock()).unwrap_or(true)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn owner_lock(&self) -> PathBuf {
        self.path.join(OWNER_LOCK)
    }

    pub(super) fn changes_lock(&self) -> PathBuf {
        self.path.join(CHANGES_LOCK)
    }

    /// Reads what is written down about the workspace. `None` if there is nothing, or if
    /// it is being created.
    pub(super) fn read(&self) -> Result<Option<Record>, WorkspaceError> {
        let path = self.path.join(RECORD);
        let metadata = fs::metadata(&self.path);
        if metadata.is_ok_and(|metadata| metadata.uid() != geteuid().as_raw()) {
            return Err(WorkspaceError::Damaged {
                path: self.path.clone(),
                reason: "belongs to another user".to_owned(),
            });
        }
        let record = Record::read(&path)?;
        match record {
            Some(record) if !self.path.ends_with(&record.id) => Err(WorkspaceError::Damaged {
                path,
                reason: format!("is that of another workspace, {}", record.id),
            }),
            record => Ok(record),
        }
    }

    pub(super) fn write(&self, record: &Record) -> Result<(), Error> {
        let written = record.write(&self.path.join(RECORD));
        written.map_err(Error::host("write the record of the workspace"))
    }

    /// Returns an error that says so if the disk of the host is full. A guest that cannot
    /// write to its disk reports something else.
    pub(super) fn explain(&self, error: Error) -> Error {
        /// Less is as good as nothing for a VM.
        const ROOM: u64 = 1 << 20;
        let is_full = statvfs(&self.path).is_ok_and(|room| {
            // Some file systems do not count files.
            let has_no_files = room.f_files > 0 && room.f_favail == 0;
            has_no_files || room.f_bavail.saturating_mul(room.f_frsize) < ROOM
        });
        match is_full {
            true => Error::Workspace(WorkspaceError::DiskFull {
                path: self.path.clone(),
                reason: error.with_causes(),
            }),
            false => error,
        }
    }

    /// Writes a record that [becomes valid](Self::commit) later, when there may be no room
    /// to write one.
    pub(super) fn prepare(&self, record: &Record) -> Result<PreparedRecord, Error> {
        let prepared = record.prepare(&self.path.join(RECORD));
        prepared.map_err(Error::host("write the record of the workspace"))
    }

    pub(super) fn commit(&self, prepared: PreparedRecord) -> Result<(), Error> {
        let written = prepared.replace(&self.path.join(RECORD));
        written.map_err(Error::host("write the record of the workspace"))
    }

    /// Records that somebody is about to end its VM, if that can be recorded.
    pub(super) fn mark_ending(&self) {
        if let Ok(Some(mut record)) = self.read() {
            record.set_ending(true);
            let written = self.write(&record);
            tracing::debug!(?written, "a workspace is about to be deleted");
        }
    }

    /// Waits until no program runs its VM, and returns the right to do so.
    pub(super) async fn wait_for_owner(&self) -> Result<Option<FileLock>, Error> {
        let path = self.owner_lock();
        on_thread("lock the workspace", move || {
            FileLock::wait(&path).map_err(Error::host("lock the workspace"))
        })
        .await
    }

    /// Waits until no VMM uses the disk. The kernel ends it with the program that ran it, but
    /// a moment later if that was killed. Blocks.
    pub(super) fn wait_for_vmm(&self, record: &Record) {
        let started_at = Instant::now();
        let is_in_use = |layer| {
            let image = Image::open(self.layer(layer), self.open_options(record));
            matches!(image, Err(ImageError::InUse { .. }))
        };
        // It may have gone on to the next layer.
        let layers = iter::once(record.layers.top()).chain(record.next_top);
        // There is no event: who waits for a lock of a file cannot stop waiting.
        while layers.clone().any(is_in_use) && started_at.elapsed() < VMM_END_TIMEOUT {
            thread::sleep(VMM_END_INTERVAL);
        }
    }

    /// Writes down the name of a workspace that is being created, so that nobody else takes
    /// it.
    pub(super) fn reserve(&self, name: Option<&str>) -> Result<(), Error> {
        match name {
            Some(name) => fs::write(self.path.join(NAME), name)
                .map_err(Error::host("make the folder of the workspace")),
            None => Ok(()),
        }
    }

    /// Returns whether nothing is written down about the workspace: it is being created, or
    /// the program that did it has died.
    pub(super) fn has_no_record(&self) -> bool {
        matches!(self.path.join(RECORD).try_exists(), Ok(false))
    }

    /// Returns the name of a workspace that is being created.
    pub(super) fn reserved_name(&self) -> Option<String> {
        match self.has_no_record() {
            true => fs::read_to_string(self.path.join(NAME)).ok(),
            false => None,
        }
    }

    /// Returns where the messages of its keeper are.
    pub(super) fn keeper_log(&self) -> PathBuf {
        self.path.join(KEEPER_LOG)
    }

    /// Returns whether a program runs its VM.
    pub(super) fn is_owned(&self) -> bool {
        FileLock::is_held(&self.owner_lock()).unwrap_or(false)
    }

    /// Returns the state of the workspace.
    pub(super) fn state(&self, record: &Record) -> WorkspaceState {
        // Until its end is recorded, nobody else can change it.
        let is_running = || self.is_owned() || self.is_being_changed();
        if record.run.is_some() && is_running() {
            return WorkspaceState::Running;
        }
        let is_paused = || record.next_pause().is_some() && self.has_memory();
        match record.pause.is_some() || is_paused() {
            true => WorkspaceState::Paused,
            false => WorkspaceState::Stopped,
        }
    }

    /// Returns whether somebody is changing it.
    pub(super) fn is_being_changed(&self) -> bool {
        FileLock::is_held(&self.changes_lock()).unwrap_or(false)
    }

    pub(super) fn layer(&self, number: u32) -> PathBuf {
        self.path.join(LAYERS).join(format!("{number}.qcow2"))
    }

    /// Returns whether a path is that of one of its layers, also by another name of the
    /// folder.
    pub(super) fn contains_layer(&self, path: &Path) -> bool {
        let identity = |folder: &Path| {
            let metadata = fs::metadata(folder);
            metadata.map(|folder| (folder.dev(), folder.ino())).ok()
        };
        let own = identity(&self.path.join(LAYERS));
        own.is_some() && path.parent().and_then(identity) == own
    }

    /// Returns the image below the layers.
    pub(super) fn image(&self, record: &Record) -> PathBuf {
        let linked = self.path.join(IMAGE);
        match linked.exists() {
            true => linked,
            false => record.specification.image.clone(),
        }
    }

    /// Returns the folders where files of its disk are: its own, and that of the image.
    pub(super) fn backing_folders(&self, record: &Record) -> Vec<PathBuf> {
        let image = self.image(record);
        let image = image.parent().map(Path::to_owned);
        [self.path.clone()].into_iter().chain(image).collect()
    }

    /// Returns how the layers are opened.
    pub(super) fn open_options(&self, record: &Record) -> OpenOptions {
        let folders = self.backing_folders(record).into_iter();
        folders.fold(OpenOptions::new(), OpenOptions::allow_backing)
    }

    /// Gives the image another name in this folder, so that it is there as long as the
    /// workspace is. Does nothing if the image is in another file system.
    pub(super) fn link_image(&self, image: &Path) {
        if let Err(error) = fs::hard_link(image, self.path.join(IMAGE)) {
            tracing::debug!(%error, "the image of a workspace stays where it is");
        }
    }

    /// Gives the layers of another workspace that are not written any more, and its
    /// image, another name in this folder.
    pub(super) fn link_layers(
        &self,
        from: &Self,
        layers: impl IntoIterator<Item = u32>,
    ) -> io::Result<()> {
        for layer in layers {
            fs::hard_link(from.layer(layer), self.layer(layer))?;
        }
        match fs::hard_link(from.path.join(IMAGE), self.path.join(IMAGE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            linked => linked,
        }
    }

    /// Creates a layer above another one, or above the image.
    pub(super) fn create_layer(&self, number: u32, record: &Record) -> Result<(), Error> {
        self.create_layer_at(&self.layer(number), number, record)?;
        self.sync_layers()
    }

    /// Creates a layer that gets its name [later](Self::place_layer). Nobody takes it for
    /// one that a VM writes to.
    pub(super) fn prepare_layer(&self, number: u32, record: &Record) -> Result<(), Error> {
        let path = self.path.join(LAYERS).join(PREPARED);
        // Of a program that was killed.
        if path.exists() {
            remove(&path);
        }
        self.create_layer_at(&path, number, record)
    }

    /// Gives the layer its name that was [prepared](Self::prepare_layer).
    pub(super) fn place_layer(&self, number: u32) -> Result<(), Error> {
        let prepared = self.path.join(LAYERS).join(PREPARED);
        let placed = fs::rename(prepared, self.layer(number));
        placed.map_err(Error::host("make a layer of the disk"))?;
        self.sync_layers()
    }

    fn create_layer_at(&self, path: &Path, number: u32, record: &Record) -> Result<(), Error> {
        let below = match record.layers.below(number) {
            Some(layer) => self.layer(layer),
            None => self.image(record),
        };
        let least_size = record.specification.disk_mib.unwrap_or(0);
        let least_size = u64::from(least_size) << 20;
        create_child_of_size(below, path, least_size, self.open_options(record))?;
        Ok(())
    }

    /// Makes sure that the names of new layers are there after a power failure.
    pub(super) fn sync_layers(&self) -> Result<(), Error> {
        let synced = fs::File::open(self.path.join(LAYERS)).and_then(|folder| folder.sync_all());
        synced.map_err(Error::host("make a layer of the disk"))
    }

    /// Records that somebody uses it.
    pub(super) fn touch(&self) {
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(false);
        let file = file.mode(0o600).open(self.path.join(ACTIVITY));
        let touched = file.and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = touched {
            tracing::debug!(%error, "cannot record the use of a workspace");
        }
    }

    /// Returns when somebody has used it; now if that is in the future, because somebody
    /// has set the clock back.
    pub(super) fn last_activity(&self, record: &Record) -> SystemTime {
        let now = SystemTime::now();
        let metadata = fs::metadata(self.path.join(ACTIVITY));
        let touched = metadata.and_then(|metadata| metadata.modified());
        let known = [Some(record.last_activity.time()), touched.ok()];
        let known = known.into_iter().flatten().filter(|time| *time <= now);
        known.max().unwrap_or(now)
    }

    /// Merges layers: replaces the file of the uppermost one by a file that contains what
    /// all of them contain. Nothing else changes, because its name stays the same, which
    /// the layers above know it by. Who has linked or opened the old file keeps that.
    ///
    /// The files of the links stay until the record does not name them any more. If this
    /// program is killed before, the disk reads the same with them as without them.
    ///
    /// The caller has both locks.
    pub(super) fn merge_layers(&self, merge: &LayerMerge, record: &Record) -> Result<(), Error> {
        const DOING: &str = "merge layers of the disk";
        let path = self.layer(merge.into);
        let options = self.open_options(record).format(Format::Qcow2);
        let image = Image::open(&path, options)?;
        let layers = image.layers().map_err(Error::host(DOING))?;
        // The headers of the files count: a program that was killed may have merged these
        // layers, and not have written so.
        let links = merge.links.iter().map(|layer| self.layer(*layer));
        let links: Vec<_> = links.filter_map(|it| fs::canonicalize(it).ok()).collect();
        let below = layers.iter().skip(1);
        let count = below.take_while(|it| links.contains(&it.path)).count();
        if count == 0 {
            return Ok(());
        }
        // Each cluster of the new file is one of these, if they are what they claim to be.
        let length = |layer: &Layer| fs::metadata(&layer.path).map(|file| file.len());
        let limit: io::Result<u64> = layers.iter().take(1 + count).map(length).sum();
        let limit = limit.map_err(Error::host(DOING))?;
        let folder = self.path.join(LAYERS);
        let merged = folder.join(MERGED);
        let go_on = &mut |_| ControlFlow::Continue(());
        merge_layers(&image, 1 + count, &merged, limit, go_on)?;
        // The record must not reach the disk before the new name.
        let replace = || {
            fs::rename(&merged, &path)?;
            File::open(&folder)?.sync_all()
        };
        replace().map_err(Error::host(DOING))
    }

    /// Returns what was run in it.
    pub(super) fn history(&self) -> History {
        History::new(self.path.join(HISTORY))
    }

    /// Returns the secrets that it keeps.
    pub(super) fn secrets(&self) -> KeptSecrets {
        KeptSecrets::new(self.path.join(SECRETS))
    }

    /// Returns where the memory of its VM is while it is paused.
    pub(super) fn memory(&self) -> PathBuf {
        self.path.join(MEMORY)
    }

    /// Returns whether the memory of its VM is there, as a whole.
    pub(super) fn has_memory(&self) -> bool {
        self.memory().is_dir()
    }

    /// Removes the memory of a VM, and what was written of one by a program that died.
    pub(super) fn remove_memory(&self) {
        let removed = remove_whole(&self.memory()).and_then(|_| remove_abandoned(&self.path));
        if let Err(error) = removed {
            tracing::warn!(%error, "cannot remove the memory of a workspace");
        }
    }

    /// Records that its VM has ended: because it is paused now, or for this reason.
    pub(super) fn end_run(&self, record: &mut Record, reason: &str) {
        match record.run.take() {
            Some(run) if run.next_pause.is_some() && self.has_memory() => {
                record.pause = run.next_pause;
            }
            _ => record.ended(reason),
        }
    }

    /// Removes the memory of a VM that goes on. When this returns, it has no name any more;
    /// its files are removed meanwhile, which takes long for a large one.
    pub(super) fn remove_memory_later(&self) {
        match hide(&self.memory()) {
            Ok(Some(memory)) => drop(tokio::task::spawn_blocking(|| memory.remove())),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "cannot remove the memory of a workspace"),
        }
    }

    /// Finishes or undoes what programs have left undone that died. The caller has both
    /// locks.
    pub(super) fn repair(&self, record: &mut Record) -> Result<(), Error> {
        if record.run.is_some() {
            self.end_run(record, OWNER_DIED);
            // If there is no room for it now, the next one finds out again.
            if let Err(error) = self.write_end(record) {
                let error = error.with_causes();
                tracing::warn!(
                    error,
                    id = record.id,
                    "cannot record the end of a workspace"
                );
            }
        }
        // There may be none.
        let _ = self.give_room_back();
        if let Some(next) = record.next_top.take() {
            if self.layer(next).exists() {
                // The VM may have written to it.
                record.layers.start_above(record.layers.top());
            }
            self.write(record)?;
        }
        if record.pause.is_none() {
            self.remove_memory();
        }
        self.remove_unknown_files(record);
        Ok(())
    }

    /// Removes the files of layers that the record does not name, and those that were
    /// being written.
    pub(super) fn remove_unknown_files(&self, record: &Record) {
        let known: Vec<_> = record.layers.all().map(|layer| self.layer(layer)).collect();
        let layers = fs::read_dir(self.path.join(LAYERS));
        for entry in layers.into_iter().flatten().flatten() {
            if !known.contains(&entry.path()) {
                remove(&entry.path());
            }
        }
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(NEW.as_bytes())
            {
                remove(&entry.path());
            }
        }
    }
}

/// Removes the folder of a workspace that could not be created. What is left of it is
/// removed by the next one who looks.
pub(super) fn remove_folder(path: &Path) {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "cannot remove a workspace");
        }
        _ => {}
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(%error, path = %path.display(), "cannot remove a file");
    }
}
