use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use super::{
    BASELINE, WorkspaceState,
    folder::Folder,
    record::{OWNER_DIED, Record, SnapshotRecord},
    timestamp::Timestamp,
};
use crate::{network::NetworkPolicy, quotas::Quotas, secret::SecretInfo, service::ServiceCounts};

/// A workspace as it is listed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkspaceInfo {
    /// Its id, which never changes.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What its image is called.
    pub environment: String,
    /// Where the image was when the workspace was created.
    pub image: PathBuf,
    /// Its state.
    pub state: WorkspaceState,
    /// Why it is stopped, if it ran before.
    pub stop_reason: Option<String>,
    /// The number of virtual processors.
    pub vcpus: u32,
    /// The memory in MiB.
    pub memory_mib: u32,
    /// The size of the disk in MiB, if it is another one than that of the image.
    pub disk_mib: Option<u32>,
    /// What its programs reach.
    pub network: NetworkPolicy,
    /// What its VM may use of this machine.
    pub quotas: Quotas,
    /// How `/workspace` was filled.
    pub seed: WorkspaceSeed,
    /// When it was created.
    pub created: SystemTime,
    /// When it was used.
    pub last_activity: SystemTime,
    /// When it is deleted by itself.
    pub expires: Option<SystemTime>,
    /// How long it may be unused before it is paused by itself.
    pub idle_time: Option<Duration>,
    /// When it was paused.
    pub paused: Option<SystemTime>,
    /// Whether it is paused because nobody used it.
    pub is_paused_automatically: bool,
    /// Whether that was after the last [list](super::Workspaces::list) before this one.
    pub is_newly_paused: bool,
    /// How many commands its history has.
    pub command_count: u64,
    /// How many services its VM has. Those of one that is paused do not run. `None` if its
    /// VM does not answer.
    pub services: Option<ServiceCounts>,
    /// The secrets that it keeps: their names and sources.
    pub secrets: Vec<SecretInfo>,
    /// How often it was reset.
    pub reset_count: u64,
    /// When it was reset.
    pub last_reset: Option<SystemTime>,
}

/// How `/workspace` of a workspace was filled when it was created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceSeed {
    /// The folder or archive; `None` if it began empty.
    pub path: Option<PathBuf>,
    /// Whether it was an archive.
    pub is_archive: bool,
    /// The number of entries that were copied.
    pub entries: u64,
    /// The size of their files in bytes.
    pub bytes: u64,
}

/// A snapshot of a workspace's disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceSnapshot {
    /// Its name; `baseline` for the workspace as it was created.
    pub name: String,
    /// When it was taken.
    pub created: SystemTime,
    /// How many bytes its last layer takes on the disk: what was written since the
    /// snapshot before it.
    pub bytes: u64,
    /// How long the processors of its VM stood still for it. `None` if it did not run.
    pub pause: Option<Duration>,
}

impl WorkspaceInfo {
    pub(super) fn new(mut record: Record, folder: &Folder) -> Self {
        let last_activity = folder.last_activity(&record);
        let state = folder.state(&record);
        if state == WorkspaceState::Paused && record.pause.is_none() {
            // Whoever changes it next records that.
            record.pause = record.run.take().and_then(|run| run.next_pause);
        }
        let stop_reason = match (state, &record.run, record.last_end) {
            (WorkspaceState::Stopped, Some(_), _) => Some(OWNER_DIED.to_owned()),
            (WorkspaceState::Stopped, None, Some(end)) => Some(end.reason),
            _ => None,
        };
        let services = match (state, &record.pause) {
            // Its VM is asked.
            (WorkspaceState::Running, _) => None,
            (_, Some(pause)) => Some(ServiceCounts {
                total: pause.services,
                running: 0,
            }),
            (_, None) => Some(ServiceCounts::default()),
        };
        Self {
            id: record.id,
            name: record.name,
            labels: record.labels,
            environment: record.specification.environment,
            image: record.specification.image,
            state,
            stop_reason,
            vcpus: record.specification.vcpus,
            memory_mib: record.specification.memory_mib,
            disk_mib: record.specification.disk_mib,
            network: record.specification.network,
            quotas: record.specification.quotas,
            seed: WorkspaceSeed {
                path: record.seed.path,
                is_archive: record.seed.is_archive,
                entries: record.seed.entries,
                bytes: record.seed.bytes,
            },
            created: record.created.time(),
            last_activity,
            expires: record.expires.map(Timestamp::time),
            idle_time: record.specification.idle_seconds.map(Duration::from_secs),
            is_paused_automatically: record.pause.as_ref().is_some_and(|it| it.is_automatic),
            paused: record.pause.map(|pause| pause.began.time()),
            is_newly_paused: false,
            command_count: folder.history().count(),
            services,
            secrets: folder.secrets().list(),
            reset_count: record.reset_count,
            last_reset: record.last_reset.map(Timestamp::time),
        }
    }
}

impl WorkspaceSnapshot {
    pub(super) fn new(name: &str, record: &SnapshotRecord, bytes: u64) -> Self {
        Self {
            name: name.to_owned(),
            created: record.created.time(),
            bytes,
            pause: record.pause_us.map(Duration::from_micros),
        }
    }

    /// Returns whether it is the workspace as it was created, which cannot be deleted.
    pub fn is_baseline(&self) -> bool {
        self.name == BASELINE
    }
}
