//! Merging the layers that snapshots leave behind when they are deleted, so that the chain
//! of a workspace's disk stays short.
//!
//! ```text
//!  image ── 1 ── 2 ── 3 ── 4      1 is the baseline, 4 the top; the snapshots whose
//!                                 layers 2 and 3 were are deleted
//!  image ── 1 ─────────── 4       its new file has what was in 2, 3 and 4
//! ```
//!
//! A link, which is a layer that nothing needs by itself, is merged into the layer above
//! it, as many as there are in a row. A new file is written, and takes the name of the
//! file of the upper layer. All that is above finds it by that name and reads the same as
//! before, so no header of another file changes. Then the record is written, and the files
//! of the links are removed. A program that is killed in between leaves the old record, with
//! the files of the links, which nothing reads; the next one that merges finds out.
//!
//! Nobody may write to the files meanwhile, so all of this is done while the workspace is
//! stopped. Forks have names of their own for the old files, and are not affected.

use super::{
    WorkspaceError, WorkspaceState,
    layers::{LONG_CHAIN, MAX_CHAIN},
    locked::Locked,
};
use crate::{error::Error, on_thread::on_thread};

/// Merges what can be merged of a long chain, if the workspace is stopped. If that fails, the
/// chain is as it was, which is slower but no reason not to start. One that is paused stays
/// as it is, because its memory belongs to these files.
pub(super) async fn shorten_chain(locked: Locked) -> Result<Locked, Error> {
    let is_stopped = locked.state() == WorkspaceState::Stopped;
    if !is_stopped || chain_length(&locked) <= LONG_CHAIN {
        return Ok(locked);
    }
    let (locked, merged) = merge(locked).await?;
    if let Err(error) = merged {
        let id = &locked.record.id;
        tracing::warn!(%error, id, "cannot merge the layers of a workspace");
    }
    Ok(locked)
}

/// Makes sure that one more layer can be above the top.
pub(super) async fn make_room(locked: Locked) -> Result<Locked, Error> {
    if chain_length(&locked) < MAX_CHAIN {
        return Ok(locked);
    }
    let has_links = !locked.record.mergeable_layers().is_empty();
    let remedy = match (locked.state(), has_links) {
        (WorkspaceState::Stopped, true) => {
            let (locked, merged) = merge(locked).await?;
            return merged.map(|()| locked);
        }
        // There are no snapshots of one that is paused.
        (WorkspaceState::Paused, _) => return Ok(locked),
        (WorkspaceState::Stopped, false) => "delete snapshots",
        (WorkspaceState::Running, true) => {
            "stop and start it, which merges the layers of deleted snapshots"
        }
        (WorkspaceState::Running, false) => "delete snapshots, then stop and start it",
    };
    Err(WorkspaceError::TooManyLayers {
        id: locked.record.id.clone(),
        limit: MAX_CHAIN,
        remedy,
    }
    .into())
}

/// Returns the number of layers that the disk consists of, without the image.
fn chain_length(locked: &Locked) -> usize {
    let layers = &locked.record.layers;
    layers.chain(layers.top()).count()
}

/// Merges what can be merged. The workspace must be stopped. Returns it also if that fails.
async fn merge(mut locked: Locked) -> Result<(Locked, Result<(), Error>), Error> {
    // The thread has the locks, because it goes on if nobody waits for it any more.
    on_thread("merge layers of the disk", move || {
        let merged = merge_all(&mut locked);
        Ok((locked, merged))
    })
    .await
}

fn merge_all(locked: &mut Locked) -> Result<(), Error> {
    for merge in locked.record.mergeable_layers() {
        locked.folder.merge_layers(&merge, &locked.record)?;
        locked.record.layers.merge(&merge);
        locked.write()?;
        locked.folder.remove_unknown_files(&locked.record);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{
        super::{
            NewWorkspace,
            folder::Folder,
            lock::FileLock,
            record::{PauseRecord, Record, SnapshotRecord},
            timestamp::Timestamp,
        },
        *,
    };
    use crate::disk::image::Image;

    /// A stopped workspace with this many layers in a chain, of which only the baseline is
    /// needed.
    fn workspace(root: &Path, layers: u32) -> Locked {
        let image = root.join("image.raw");
        fs::write(&image, vec![7; 100_000]).unwrap();
        let id = "ws-abcdefghjkmn";
        let (folder, changes) = Folder::create(root.join(id)).unwrap();
        let new = NewWorkspace::new(image);
        let mut record = Record::new(id.to_owned(), new.specification);
        folder.link_image(&record.specification.image);
        folder.create_layer(1, &record).unwrap();
        for layer in 1..layers {
            record.layers.start_above(layer);
            folder.create_layer(layer + 1, &record).unwrap();
        }
        let locked = Locked::new(folder, record, changes).unwrap();
        locked.write().unwrap();
        locked
    }

    /// The same workspace, while a program runs it: the one with this lock.
    fn run(locked: Locked) -> (FileLock, Locked) {
        let (folder, record) = (locked.folder.clone(), locked.record.clone());
        let [changes, owner] = locked.into_locks().unwrap();
        (owner, Locked::new(folder, record, changes).unwrap())
    }

    fn add_snapshot(locked: &mut Locked, layer: u32) {
        let snapshots = &mut locked.record.snapshots;
        snapshots.insert(format!("of-{layer}"), SnapshotRecord::new(layer));
    }

    /// Returns the names of the files that the disk consists of, and checks what is in it.
    fn chain(locked: &Locked, layer: u32) -> Vec<String> {
        let options = locked.folder.open_options(&locked.record);
        let image = Image::open(locked.folder.layer(layer), options).unwrap();
        let mut bytes = [0; 100_000];
        image.read_at(0, &mut bytes).unwrap();
        assert!(bytes == [7; 100_000]);
        let names = image.layers().unwrap().into_iter().map(|layer| {
            let name = layer.path.file_name().unwrap();
            name.to_str().unwrap().to_owned()
        });
        names.collect()
    }

    fn files(locked: &Locked) -> Vec<String> {
        let entries = fs::read_dir(locked.folder.path().join("layers")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_long_chain_is_merged_and_a_short_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        let mut locked = workspace(root.path(), 9);
        add_snapshot(&mut locked, 4);
        let locked = shorten_chain(locked).await.unwrap();
        let expected = ["9.qcow2", "4.qcow2", "1.qcow2", "image.ext4"];
        assert_eq!(chain(&locked, 9), expected);
        assert_eq!(files(&locked), ["1.qcow2", "4.qcow2", "9.qcow2"]);
        assert_eq!(locked.folder.read().unwrap().as_ref(), Some(&locked.record));
        let layers = &locked.record.layers;
        assert_eq!(layers.chain(layers.top()).collect::<Vec<_>>(), [9, 4, 1]);

        let root = tempfile::tempdir().unwrap();
        let locked = shorten_chain(workspace(root.path(), 8)).await.unwrap();
        assert_eq!(chain(&locked, 8).len(), 9);
    }

    #[tokio::test]
    async fn one_that_is_paused_stays_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let mut locked = workspace(root.path(), 16);
        locked.record.pause = Some(PauseRecord {
            began: Timestamp::now(),
            is_automatic: false,
            services: 0,
            ports: Vec::new(),
        });
        let locked = shorten_chain(locked).await.unwrap();
        let locked = make_room(locked).await.unwrap();
        assert_eq!(files(&locked).len(), 16);
    }

    #[tokio::test]
    async fn what_was_merged_without_a_record_of_it_is_found_out() {
        let root = tempfile::tempdir().unwrap();
        let mut locked = workspace(root.path(), 12);
        add_snapshot(&mut locked, 6);
        locked.write().unwrap();
        // The program is killed after it has replaced two files, and while it writes
        // another one.
        for merge in locked.record.mergeable_layers() {
            let Locked { folder, record, .. } = &locked;
            folder.merge_layers(&merge, record).unwrap();
        }
        let merged = ["12.qcow2", "6.qcow2", "1.qcow2", "image.ext4"];
        assert_eq!(chain(&locked, 12), merged);
        fs::write(locked.folder.path().join("layers/merged.qcow2"), "half").unwrap();
        let mut record = locked.folder.read().unwrap().unwrap();
        locked.folder.repair(&mut record).unwrap();
        assert_eq!(record, locked.record);
        assert_eq!(files(&locked).len(), 12);
        assert_eq!(chain(&locked, 12), merged);
        // Before the next one merges, the snapshot is deleted, and the disk has a new top.
        locked.record.snapshots.clear();
        locked.record.layers.start_above(12);
        locked.folder.create_layer(13, &locked.record).unwrap();
        let locked = shorten_chain(locked).await.unwrap();
        assert_eq!(chain(&locked, 13), ["13.qcow2", "1.qcow2", "image.ext4"]);
        assert_eq!(files(&locked), ["1.qcow2", "13.qcow2"]);
    }

    #[tokio::test]
    async fn a_layer_that_cannot_be_merged_is_no_reason_not_to_start() {
        let root = tempfile::tempdir().unwrap();
        let locked = workspace(root.path(), 16);
        let path = locked.folder.layer(9);
        let mut bytes = fs::read(&path).unwrap();
        // Marked as corrupt.
        bytes[79] = 2;
        fs::write(&path, &bytes).unwrap();
        let before = locked.record.clone();
        let locked = shorten_chain(locked).await.unwrap();
        assert_eq!(locked.record, before);
        assert_eq!((chain(&locked, 16).len(), files(&locked).len()), (17, 16));
        // But there is no room for more.
        let error = make_room(locked).await.unwrap_err();
        assert!(error.to_string().contains("9.qcow2"), "{error}");
    }

    #[tokio::test]
    async fn there_is_room_for_16_layers() {
        let root = tempfile::tempdir().unwrap();
        let locked = workspace(root.path(), 15);
        let locked = make_room(locked).await.unwrap();
        assert_eq!(files(&locked).len(), 15);

        let root = tempfile::tempdir().unwrap();
        let locked = workspace(root.path(), 16);
        let locked = make_room(locked).await.unwrap();
        assert_eq!(files(&locked), ["1.qcow2", "16.qcow2"]);

        // A running one stays as it is.
        let root = tempfile::tempdir().unwrap();
        let (_owner, locked) = run(workspace(root.path(), 16));
        let locked = shorten_chain(locked).await.unwrap();
        assert_eq!(files(&locked).len(), 16);
        let error = make_room(locked).await.unwrap_err();
        assert_eq!(error.code(), "too-many-layers");
        assert!(error.to_string().contains("stop and start it"), "{error}");

        for (is_running, remedy) in [(false, "delete snapshots"), (true, "then stop and start")] {
            let root = tempfile::tempdir().unwrap();
            let mut locked = workspace(root.path(), 16);
            (2..16).for_each(|layer| add_snapshot(&mut locked, layer));
            let mut owner = None;
            if is_running {
                let (lock, running) = run(locked);
                (owner, locked) = (Some(lock), running);
            }
            let error = make_room(locked).await.unwrap_err();
            assert_eq!(error.code(), "too-many-layers");
            drop(owner);
            let error = error.to_string();
            assert!(
                error.contains("16 layers") && error.contains(remedy),
                "{error}"
            );
        }
    }
}
