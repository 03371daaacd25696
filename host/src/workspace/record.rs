use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{
    BASELINE, WorkspaceError,
    layers::{LayerMerge, LayerTree},
    specification::Specification,
    timestamp::Timestamp,
};
use crate::{printable_name, service::ServicePort};

/// What is written down about a workspace: all of it, in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The version of this format.
    version: u64,
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) labels: BTreeMap<String, String>,
    pub(super) specification: Specification,
    pub(super) seed: SeedRecord,
    pub(super) created: Timestamp,
    pub(super) last_activity: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<Timestamp>,
    pub(super) layers: LayerTree,
    /// Whether `/workspace` was never made on its disk, because it has not started yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_blank: bool,
    /// The layer that the VM may have gone on in, although nothing says so yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next_top: Option<u32>,
    /// Without the baseline.
    pub(super) baseline: SnapshotRecord,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) snapshots: BTreeMap<String, SnapshotRecord>,
    #[serde(default)]
    pub(super) reset_count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_reset: Option<Timestamp>,
    /// Set while its VM runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<RunRecord>,
    /// Set while the memory of its VM is on the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pause: Option<PauseRecord>,
    /// How its VM ended the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_end: Option<EndRecord>,
}

/// A snapshot of the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotRecord {
    /// The layer that is not written any more.
    pub(super) layer: u32,
    pub(super) created: Timestamp,
    /// Whether `/workspace` was never made in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_blank: bool,
    /// How many microseconds a VM stood still for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pause_us: Option<u64>,
}

impl SnapshotRecord {
    /// A snapshot that is taken now, and for which no VM stood still.
    pub(super) fn new(layer: u32) -> Self {
        Self {
            layer,
            created: Timestamp::now(),
            is_blank: false,
            pause_us: None,
        }
    }
}

/// How `/workspace` was filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeedRecord {
    /// The folder or archive; `None` if it began empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<std::path::PathBuf>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_archive: bool,
    #[serde(default)]
    pub(super) entries: u64,
    #[serde(default)]
    pub(super) bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunRecord {
    pub(super) began: Timestamp,
    /// Whether somebody is about to end it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_ending: bool,
    /// The pause that somebody is about to begin. It has begun when the memory is on the
    /// disk and the VM has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next_pause: Option<PauseRecord>,
}

impl RunRecord {
    /// A run that begins now.
    pub(super) fn new() -> Self {
        Self {
            began: Timestamp::now(),
            is_ending: false,
            next_pause: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PauseRecord {
    pub(super) began: Timestamp,
    /// Whether it was paused because nobody used it.
    #[serde(default)]
    pub(super) is_automatic: bool,
    /// How many services it has.
    #[serde(default)]
    pub(super) services: usize,
    /// The ports of its services, which are published again when it is resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ports: Vec<ServicePort>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EndRecord {
    pub(super) ended: Timestamp,
    pub(super) reason: String,
}

/// The version that is written, and the newest one that is read.
const VERSION: u64 = 1;

/// The size that most files are below.
const USUAL_SIZE: usize = 4096;

/// The size of the largest file that is read.
const MAX_SIZE: u64 = 4 << 20;

/// The reason of a run that nobody has recorded the end of.
pub(super) const OWNER_DIED: &str = "the program that ran it ended unexpectedly";

impl Record {
    /// The record of a new workspace, whose only layer is its baseline.
    pub(super) fn new(id: String, specification: Specification) -> Self {
        let now = Timestamp::now();
        let layers = LayerTree::new();
        Self {
            version: VERSION,
            id,
            name: None,
            labels: BTreeMap::new(),
            specification,
            seed: SeedRecord {
                path: None,
                is_archive: false,
                entries: 0,
                bytes: 0,
            },
            created: now,
            last_activity: now,
            expires: None,
            baseline: SnapshotRecord::new(layers.top()),
            layers,
            is_blank: false,
            next_top: None,
            snapshots: BTreeMap::new(),
            reset_count: 0,
            last_reset: None,
            run: None,
            pause: None,
            last_end: None,
        }
    }

    /// Reads a file. Returns `None` if there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, WorkspaceError> {
        let damaged = |reason: String| WorkspaceError::Damaged {
            path: path.to_owned(),
            reason,
        };
        let unreadable = |error: io::Error| damaged(format!("cannot be read: {error}"));
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(unreadable)?,
        };
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.uid() != geteuid().as_raw() {
            return Err(damaged("belongs to another user".to_owned()));
        }
        // Else the first reads are of a few bytes each.
        let mut json = Vec::with_capacity(USUAL_SIZE);
        let read = file.take(MAX_SIZE + 1).read_to_end(&mut json);
        if read.map_err(unreadable)? as u64 > MAX_SIZE {
            return Err(damaged("is too large".to_owned()));
        }
        Self::from_json(&json, path).map(Some)
    }

    pub(super) fn from_json(json: &[u8], path: &Path) -> Result<Self, WorkspaceError> {
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        let damaged = |reason: String| WorkspaceError::Damaged {
            path: path.to_owned(),
            reason,
        };
        let invalid = |error: serde_json::Error| {
            // It quotes names of the file, whatever those have.
            let error = error.to_string();
            let error = printable_name(error.as_bytes());
            damaged(format!("is not a workspace: {error}"))
        };
        // First, because a newer version may have other fields.
        let Version { version } = serde_json::from_slice(json).map_err(invalid)?;
        if version > VERSION {
            return Err(WorkspaceError::Newer {
                path: path.to_owned(),
                version,
                supported: VERSION,
            });
        }
        let record: Self = serde_json::from_slice(json).map_err(invalid)?;
        match record.is_valid() {
            true => Ok(record),
            false => Err(damaged("names layers that it does not have".to_owned())),
        }
    }

    fn is_valid(&self) -> bool {
        let is_layer = |snapshot: &SnapshotRecord| {
            // One that is written to is no snapshot.
            let mut layers = self.layers.all();
            layers.any(|layer| layer == snapshot.layer) && snapshot.layer != self.layers.top()
        };
        let is_next = |layer: u32| layer == self.layers.next();
        let snapshots = self.snapshots.values();
        self.layers.is_valid()
            && snapshots.chain([&self.baseline]).all(is_layer)
            && self.next_top.is_none_or(is_next)
    }

    /// Replaces the file, so that a reader finds the old record or the new one, also after
    /// a power failure.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        self.prepare(path)?.replace(path)
    }

    /// Writes a file that can replace the one at `path`. It is removed if it does not.
    pub(super) fn prepare(&self, path: &Path) -> io::Result<PreparedRecord> {
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        let mut file = tempfile::Builder::new().prefix(NEW).tempfile_in(folder)?;
        file.write_all(&json)?;
        file.as_file().sync_all()?;
        Ok(PreparedRecord(file))
    }

    /// Returns the layer of a snapshot.
    pub(super) fn snapshot(&self, name: &str) -> Option<&SnapshotRecord> {
        match name {
            BASELINE => Some(&self.baseline),
            _ => self.snapshots.get(name),
        }
    }

    /// Removes layers that nothing needs.
    pub(super) fn drop_unneeded_layers(&mut self) {
        let layers: Vec<_> = self.snapshot_layers().collect();
        self.layers.keep_only(layers);
    }

    pub(super) fn set_ending(&mut self, is_ending: bool) {
        if let Some(run) = &mut self.run {
            run.is_ending = is_ending;
        }
    }

    /// Returns whether somebody is about to end its VM.
    pub(super) fn is_ending(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.is_ending)
    }

    /// Returns whether somebody is about to end its VM or to pause it.
    pub(super) fn is_about_to_end(&self) -> bool {
        self.is_ending() || self.next_pause().is_some()
    }

    /// Returns the pause that somebody is about to begin.
    pub(super) fn next_pause(&self) -> Option<&PauseRecord> {
        self.run.as_ref()?.next_pause.as_ref()
    }

    /// Returns which layers below the top can be merged.
    pub(super) fn mergeable_layers(&self) -> Vec<LayerMerge> {
        self.layers.mergeable(self.snapshot_layers())
    }

    fn snapshot_layers(&self) -> impl Iterator<Item = u32> {
        let snapshots = self.snapshots.values().chain([&self.baseline]);
        snapshots.map(|snapshot| snapshot.layer)
    }

    /// Records that its VM has ended.
    pub(super) fn ended(&mut self, reason: &str) {
        self.run = None;
        self.last_end = Some(EndRecord {
            ended: Timestamp::now(),
            reason: reason.to_owned(),
        });
    }
}

/// A record on the disk that becomes valid later, when there may be no room to write one.
#[derive(Debug)]
pub(super) struct PreparedRecord(NamedTempFile);

impl PreparedRecord {
    pub(super) fn replace(self, path: &Path) -> io::Result<()> {
        self.0.persist(path)?;
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        File::open(folder)?.sync_all()
    }
}

/// How the names of files begin that are being written.
pub(super) const NEW: &str = ".new-";

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use super::*;
    use crate::{network::NetworkPolicy, quotas::Quotas};

    pub(in crate::workspace) fn record() -> Record {
        let specification = Specification {
            environment: "base".to_owned(),
            image: "base.ext4".into(),
            vcpus: 1,
            memory_mib: 128,
            disk_mib: None,
            user: None,
            variables: BTreeMap::new(),
            network: NetworkPolicy::off(),
            quotas: Quotas::new(),
            idle_seconds: None,
        };
        let mut record = Record::new("ws-abcdefghjkmn".to_owned(), specification);
        record.layers.start_above(1);
        record
    }

    #[test]
    fn a_record_is_the_same_after_it_was_written_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("workspace.json");
        assert_eq!(Record::read(&path).unwrap(), None);
        let mut record = record();
        record.name = Some("build".to_owned());
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap().as_ref(), Some(&record));
        record.ended("stopped");
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), Some(record));
        // Nothing else is left.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_that_are_damaged_or_newer_are_refused_and_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("workspace.json");
        let json = serde_json::to_string(&record()).unwrap();
        for (text, expected) in [
            (json[..json.len() / 2].to_owned(), "is not a workspace"),
            (String::new(), "is not a workspace"),
            (
                json.replace("\"scope\":\"off\"", "\"scope\":\"\\u001b[2J\""),
                "\u{fffd}[2J",
            ),
            (
                json.replace("\"version\":1", "\"version\":2"),
                "newer version",
            ),
            (json.replace("\"layer\":1", "\"layer\":7"), "layers"),
            (json.replace("\"layer\":1", "\"layer\":2"), "layers"),
            (format!("{json}{}", " ".repeat(5 << 20)), "too large"),
        ] {
            assert_ne!(text, json);
            fs::write(&path, text).unwrap();
            let error = Record::read(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
            assert!(error.contains("workspace.json"), "{error}");
        }
    }

    #[test]
    fn only_layers_that_nothing_needs_are_dropped() {
        let mut record = record();
        let snapshot = SnapshotRecord::new(2);
        record.snapshots.insert("a".to_owned(), snapshot);
        record.layers.start_above(2);
        record.layers.start_above(1);
        record.drop_unneeded_layers();
        assert_eq!(record.layers.all().collect::<Vec<_>>(), [1, 2, 4]);
        record.snapshots.clear();
        record.drop_unneeded_layers();
        assert_eq!(record.layers.all().collect::<Vec<_>>(), [1, 4]);
    }
}
