//! Control over a running Cloud Hypervisor, by its API.

use std::{
    fs::{self, DirBuilder},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt as _, symlink},
    },
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::{
    backend::{
        Feature, PartKind, SavedMachine, SavedPart, SavedVm, VmmControl,
        http_api::{Api, ApiRequest},
        savable::{RESTORING, SAVING, Savable, make_private},
        version::Version,
    },
    error::Error,
};

/// Control over a Cloud Hypervisor.
#[derive(Debug)]
pub(super) struct CloudHypervisorControl {
    pub(super) api: Api,
    pub(super) savable: Savable,
    pub(super) version: Version,
}

/// The first version that ends the connections of a restored guest. With an earlier one the
/// guest would not accept new ones, which have the same ports.
const FIRST_WITH_SNAPSHOTS: Version = Version(52, 0, 0);

const PAUSE: ApiRequest<'_> = ApiRequest {
    method: "PUT",
    path: "/api/v1/vm.pause",
    body: "",
};

const RESUME: ApiRequest<'_> = ApiRequest {
    path: "/api/v1/vm.resume",
    ..PAUSE
};

/// The files of a snapshot. Their names cannot be chosen.
const FILES: [(&str, PartKind); 3] = [
    ("config.json", PartKind::State),
    ("state.json", PartKind::State),
    ("memory-ranges", PartKind::Memory),
];

/// Returns whether this version can save and restore VMs.
pub(super) fn has_snapshots(version: Version) -> bool {
    version >= FIRST_WITH_SNAPSHOTS
}

/// Fails if this version cannot save and restore VMs.
pub(super) fn require_snapshots(version: Version) -> Result<(), Error> {
    match has_snapshots(version) {
        true => Ok(()),
        false => Err(Error::BackendLacks {
            backend: "cloud_hypervisor".to_owned(),
            feature: Feature::Snapshot,
            remedy: "install Cloud Hypervisor 52 or later, or choose the backend qemu",
        }),
    }
}

impl VmmControl for CloudHypervisorControl {
    fn pause(&mut self) -> Result<(), Error> {
        self.api.request(PAUSE, "pause the VM").map(drop)
    }

    fn resume(&mut self) -> Result<(), Error> {
        self.api.request(RESUME, "resume the VM").map(drop)
    }

    fn save(&mut self, folder: &Path) -> Result<SavedVm, Error> {
        require_snapshots(self.version)?;
        let version = self.api.text("/api/v1/vmm.ping", "build_version", SAVING)?;
        let body = json!({ "destination_url": file_url(folder)? });
        self.savable
            .put(&self.api, "/api/v1/vm.snapshot", &body, SAVING)?;
        let mut parts = Vec::new();
        for (name, kind) in FILES {
            let file = self.savable.open_written(&folder.join(name), kind)?;
            make_private(&file).map_err(Error::host(SAVING))?;
            parts.push(SavedPart::new(name, kind));
        }
        self.savable.finish(folder, &version, parts)
    }
}

impl CloudHypervisorControl {
    /// Restores a VM in a Cloud Hypervisor that was just started, and lets it run.
    pub(super) fn restore(&mut self, saved: &SavedFolder) -> Result<(), Error> {
        let body = json!({ "source_url": file_url(&saved.path)? });
        self.savable
            .put(&self.api, "/api/v1/vm.restore", &body, RESTORING)?;
        self.api.request(RESUME, RESTORING).map(drop)
    }
}

/// A folder as Cloud Hypervisor restores a VM from. Its files are links to descriptors that
/// Cloud Hypervisor inherits. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct SavedFolder {
    path: PathBuf,
}

impl SavedFolder {
    /// Creates the folder. Returns the descriptors, too, of which the first is to have this
    /// number, and the others those that follow.
    pub(super) fn create(
        path: PathBuf,
        saved: &SavedMachine,
        first_descriptor: usize,
    ) -> io::Result<(Self, Vec<OwnedFd>)> {
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self { path };
        let states = saved.open(PartKind::State)?;
        let files = states.into_iter().chain(saved.open(PartKind::Memory)?);
        let mut descriptors = Vec::new();
        for ((name, _), file) in FILES.into_iter().zip(files) {
            let number = first_descriptor + descriptors.len();
            symlink(format!("/proc/self/fd/{number}"), folder.path.join(name))?;
            descriptors.push(file.into());
        }
        match descriptors.len() == FILES.len() {
            true => Ok((folder, descriptors)),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for SavedFolder {
    fn drop(&mut self) {
        // It goes with the folder of the VM otherwise.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Returns the URL of a folder. Nothing in it is escaped.
fn file_url(folder: &Path) -> Result<String, Error> {
    let path = folder.to_str().ok_or_else(|| Error::BadFile {
        what: "path",
        path: folder.to_owned(),
        reason: "is not UTF-8, which the API of Cloud Hypervisor needs".to_owned(),
    })?;
    Ok(format!("file://{path}"))
}
