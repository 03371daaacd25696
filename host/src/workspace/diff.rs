//! What has changed in a workspace since a snapshot.

use std::path::Path;

use super::{
    Workspace, WorkspaceError, folder::Folder, locked::Locked, record::Record,
    specification::WORKSPACE,
};
use crate::{
    diff::{Diff, DiffCollector, DiffLimits, DiffOptions, Manifest, ManifestEntry, ManifestKind},
    disk::{Disk, DiskError, DiskOptions, WalkOptions},
    error::Error,
    files::{Files, ManifestOptions, manifest_entry},
    on_thread::on_thread,
    result_budget::ResultBudget,
};

/// How many bytes of texts are kept of a snapshot, so that changed lines can be shown.
const MAX_TEXTS: u64 = 64 << 20;

/// The largest text of which changed lines are shown.
const MAX_TEXT: u64 = 1 << 20;

impl Workspace {
    /// Compares `/workspace` as it is now with a snapshot of it; `baseline` is the
    /// workspace as it was created. It can be running, paused or stopped.
    ///
    /// ```no_run
    /// # async fn example(workspace: vmcell::workspace::Workspace) -> Result<(), vmcell::Error> {
    /// let diff = workspace.diff(vmcell::workspace::BASELINE).await?;
    /// diff.write_patch(std::io::stdout()).map_err(|error| eprintln!("{error}")).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WorkspaceError::NoSnapshot`], [`Error::OfflineDisk`] if the disk is damaged, and
    /// as for [`Files::diff`](crate::files::Files::diff).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn diff(&self, snapshot: &str) -> Result<Diff, Error> {
        let mut locked = self.lock().await?;
        let vm = self.running_vm(&mut locked).await?;
        let Some(layer) = locked.record.snapshot(snapshot).map(|it| it.layer) else {
            return Err(self.no_snapshot(snapshot));
        };
        let Locked { folder, record, .. } = &locked;
        let (before, now) = (folder.layer(layer), folder.layer(record.layers.top()));
        let options = disk_options(folder, record);
        if let Some(vm) = vm {
            let reading = on_thread("read the snapshot", move || manifest(&options, &before));
            let before = reading.await?;
            // Others may change it again: no layer is read any more.
            drop(locked);
            let options = ManifestOptions::new();
            return vm.files().diff(WORKSPACE, &before, options).await;
        }
        on_thread("compare the workspace with the snapshot", move || {
            let before = manifest(&options, &before)?;
            let now = manifest(&options, &now)?;
            drop(locked);
            compare(&before, &now)
        })
        .await
    }

    /// Opens its disk, to read it without a VM.
    ///
    /// # Errors
    /// [`WorkspaceError::State`] unless it is stopped, [`Error::OfflineDisk`] if the disk is
    /// damaged.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn disk(&self) -> Result<Disk, Error> {
        let locked = self.lock().await?;
        locked.require_stopped()?;
        on_thread("open the disk of the workspace", move || {
            let Locked { folder, record, .. } = &locked;
            Ok(disk_options(folder, record).open(folder.layer(record.layers.top()))?)
        })
        .await
    }

    pub(super) fn no_snapshot(&self, name: &str) -> Error {
        WorkspaceError::NoSnapshot {
            id: self.id().to_owned(),
            name: name.to_owned(),
        }
        .into()
    }
}

fn disk_options(folder: &Folder, record: &Record) -> DiskOptions {
    let folders = folder.backing_folders(record).into_iter();
    folders.fold(Disk::options(), DiskOptions::allow_backing)
}

/// Returns what `/workspace` contains on a disk.
fn manifest(options: &DiskOptions, layer: &Path) -> Result<Manifest, Error> {
    let disk = options.open(layer)?;
    let mut manifest = Manifest::new();
    let mut left = MAX_TEXTS;
    // As a disk names it.
    let top = WORKSPACE.trim_start_matches('/');
    let mut budget = ResultBudget::new(
        "the manifest",
        Files::MAX_MANIFEST,
        Files::MAX_MANIFEST_BYTES,
        "delete some files of the workspace",
    );
    let walk = WalkOptions::new().with_sha256().without_names();
    let entries = match disk.walk(WORKSPACE, walk) {
        // Nothing has made it yet, or it was removed.
        Err(DiskError::NotFound { .. }) => return Ok(manifest),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry.map_err(|problem| problem.error)?;
        budget.add(entry.memory_size())?;
        let path = entry.path.strip_prefix(top).unwrap_or(&entry.path);
        let path = path.to_owned();
        let source = entry.path.clone();
        let entry = manifest_entry(entry)?;
        if let ManifestKind::File { size, sha256 } = entry.kind
            && size <= MAX_TEXT.min(left)
            && manifest.text(&sha256).is_none()
        {
            manifest.keep_text(sha256, disk.read(&source)?);
            left -= size;
        }
        let inserted = manifest.insert(&path, entry);
        inserted.map_err(|_| Error::unexpected_reply())?;
    }
    Ok(manifest)
}

fn compare(before: &Manifest, now: &Manifest) -> Result<Diff, Error> {
    let limits = DiffLimits::default();
    let mut collector = DiffCollector::new(DiffOptions::default(), limits);
    for change in Manifest::compare(before, now) {
        let old = text_of(before, change.old.as_ref());
        let new = text_of(now, change.new.as_ref());
        let added = collector.add(change, old, new);
        added.map_err(|_| {
            Error::Invalid(format!(
                "the differences take more than {} MiB",
                limits.total_bytes >> 20
            ))
        })?;
    }
    Ok(collector.finish())
}

fn text_of<'a>(manifest: &'a Manifest, entry: Option<&ManifestEntry>) -> Option<&'a [u8]> {
    match entry?.kind {
        ManifestKind::File { sha256, .. } => manifest.text(&sha256),
        _ => None,
    }
}
