//! Workspaces, in real VMs. They need what `make setup` installs.
#![allow(clippy::unwrap_used)]

mod attached;
mod blank;
mod clocks;
mod deletion;
mod disk_sizes;
mod full_disk;
mod ids;
mod keepers;
mod layers;
mod lifecycle;
mod namespaces;
mod pauses;
mod power_cuts;
mod record_file;
mod services;
mod snapshots;
mod state_files;
mod two_programs;
mod warm_starts;

use std::path::PathBuf;

use tempfile::TempDir;
use vmcell::{
    Command,
    workspace::{NewWorkspace, Workspace, Workspaces},
};

/// Workspaces in a folder of their own.
struct Store {
    workspaces: Workspaces,
    root: TempDir,
}

impl Store {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self {
            workspaces: Workspaces::at(root.path()).unwrap(),
            root,
        }
    }

    /// Returns the folder of a workspace.
    fn folder(&self, workspace: &Workspace) -> PathBuf {
        self.root.path().join("workspaces").join(workspace.id())
    }

    /// Returns the names of all files below the folder of the workspaces.
    fn files(&self) -> Vec<String> {
        let folder = self.root.path().join("workspaces");
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.contains("ws-")).collect();
        names.sort();
        names
    }
}

/// A small workspace.
fn new() -> NewWorkspace {
    let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
    NewWorkspace::new(image).environment("base").memory_mib(128)
}

/// Returns what a line prints in a workspace.
async fn shell(workspace: &Workspace, line: &str) -> String {
    let output = workspace.exec(Command::shell(line)).await.unwrap();
    assert!(output.success(), "{line}: {output:?}");
    output.stdout_text().to_owned()
}
