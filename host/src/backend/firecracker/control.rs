//! Control over a running Firecracker, by its API.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::utf8_path;
use crate::{
    backend::{
        PartKind, SavedPart, SavedVm, VmmControl,
        api_socket::wait_until_listening,
        http_api::{Api, ApiRequest},
        savable::{RESTORING, SAVING, Savable, create},
    },
    error::Error,
    sparse,
};

/// Control over a Firecracker.
#[derive(Debug)]
pub(super) struct FirecrackerControl {
    pub(super) api: Api,
    pub(super) savable: Savable,
    /// What it sees as its root folder, if it is in a jail.
    pub(super) root: Option<PathBuf>,
}

/// The files of a saved VM, as the Firecracker sees them that restores it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedPaths {
    pub(super) state: &'static str,
    pub(super) memory: &'static str,
}

const PAUSE: ApiRequest<'_> = ApiRequest {
    method: "PATCH",
    path: "/vm",
    body: r#"{"state":"Paused"}"#,
};

const RESUME: ApiRequest<'_> = ApiRequest {
    body: r#"{"state":"Resumed"}"#,
    ..PAUSE
};

/// How the names of the files begin that Firecracker writes in its jail.
const IN_JAIL: &str = "saved-";

impl VmmControl for FirecrackerControl {
    fn pause(&mut self) -> Result<(), Error> {
        self.api.request(PAUSE, "pause the VM").map(drop)
    }

    fn resume(&mut self) -> Result<(), Error> {
        self.api.request(RESUME, "resume the VM").map(drop)
    }

    fn save(&mut self, folder: &Path) -> Result<SavedVm, Error> {
        let version = self.api.text("/version", "firecracker_version", SAVING)?;
        let parts = [
            SavedPart::new("state", PartKind::State),
            SavedPart::new("memory", PartKind::Memory),
        ];
        match &self.root {
            None => self.save_into(folder, &parts)?,
            Some(root) => self.save_from_jail(root, folder, &parts)?,
        }
        self.savable.finish(folder, &version, parts.into())
    }
}

impl FirecrackerControl {
    /// Has Firecracker write its files into the folder.
    fn save_into(&self, folder: &Path, parts: &[SavedPart; 2]) -> Result<(), Error> {
        for part in parts {
            // It keeps the permissions of files that are there.
            create(folder, &part.name).map_err(Error::host(SAVING))?;
        }
        let [state, memory] = parts.each_ref().map(|part| folder.join(&part.name));
        self.create_snapshot(&utf8_path(&state)?, &utf8_path(&memory)?)?;
        for part in parts {
            self.savable
                .open_written(&folder.join(&part.name), part.kind)?;
        }
        Ok(())
    }

    /// Has Firecracker write its files into its root folder, and copies them from there into
    /// the folder.
    fn save_from_jail(
        &self,
        root: &Path,
        folder: &Path,
        parts: &[SavedPart; 2],
    ) -> Result<(), Error> {
        let written = parts
            .each_ref()
            .map(|part| RemovedFile(root.join(format!("{IN_JAIL}{}", part.name))));
        for file in &written {
            file.remove().map_err(Error::host(SAVING))?;
        }
        let [state, memory] = parts
            .each_ref()
            .map(|part| format!("/{IN_JAIL}{}", part.name));
        self.create_snapshot(&state, &memory)?;
        for (part, RemovedFile(path)) in parts.iter().zip(&written) {
            let from = self.savable.open_written(path, part.kind)?;
            let to = create(folder, &part.name).map_err(Error::host(SAVING))?;
            sparse::copy_into(&from, &to).map_err(Error::host(SAVING))?;
            // It may have grown meanwhile.
            self.savable.check_written(&to, part.kind)?;
        }
        Ok(())
    }

    fn create_snapshot(&self, state: &str, memory: &str) -> Result<(), Error> {
        let body = json!({
            "snapshot_type": "Full",
            "snapshot_path": state,
            "mem_file_path": memory,
        });
        self.savable
            .put(&self.api, "/snapshot/create", &body, SAVING)
    }

    /// Restores a VM in a Firecracker that was just started, and lets it run. `output` is a
    /// stream that Firecracker closes when it ends.
    pub(super) fn restore(&self, saved: SavedPaths, output: &UnixStream) -> Result<(), Error> {
        let listening = wait_until_listening(&self.api.socket, output);
        listening.map_err(|error| Error::Control {
            doing: RESTORING,
            reason: format!("it does not open its API: {error}"),
        })?;
        let body = json!({
            "snapshot_path": saved.state,
            "mem_backend": { "backend_type": "File", "backend_path": saved.memory },
            "resume_vm": true,
        });
        self.savable
            .put(&self.api, "/snapshot/load", &body, RESTORING)
    }
}

/// A file that is removed when this is dropped.
struct RemovedFile(PathBuf);

impl RemovedFile {
    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for RemovedFile {
    fn drop(&mut self) {
        // It goes with the jail otherwise.
        let _ = self.remove();
    }
}
