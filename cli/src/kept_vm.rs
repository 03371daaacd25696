//! What `vmcell vm` and `vmcell workspace` have in common. Both manage VMs that are kept
//! on the disk, which the library calls workspaces.

use std::io::{self, Write};

use serde_json::{Value, json};
use vmcell::workspace::{Workspace, WorkspaceInfo, Workspaces};
use vmcell_cli::show::Spinner;

use crate::failure::print_json;

/// One of the two groups of commands: in what it differs from the other one.
pub(crate) struct KeptVms {
    pub(crate) noun: &'static str,
    /// What an id is called in JSON.
    pub(crate) id_key: &'static str,
    pub(crate) open: fn() -> anyhow::Result<Workspaces>,
    pub(crate) as_json: fn(&WorkspaceInfo) -> Value,
}

impl KeptVms {
    pub(crate) async fn find(&self, id: &str) -> anyhow::Result<Workspace> {
        Ok((self.open)()?.get(id).await?)
    }

    pub(crate) async fn start(&self, id: &str, json: bool) -> anyhow::Result<u8> {
        let it = self.find(id).await?;
        Spinner::show_during(format!("starting the {}", self.noun), it.start()).await?;
        self.print(&it.info().await?, json)
    }

    pub(crate) async fn stop(&self, id: &str, json: bool) -> anyhow::Result<u8> {
        let it = self.find(id).await?;
        Spinner::show_during(format!("stopping the {}", self.noun), it.stop()).await?;
        self.print(&it.info().await?, json)
    }

    pub(crate) async fn delete(&self, id: &str, json: bool) -> anyhow::Result<u8> {
        let it = self.find(id).await?;
        let id = it.id().to_owned();
        it.delete().await?;
        match json {
            true => print_json(&json!({ self.id_key: id, "deleted": true })),
            false => writeln!(io::stdout(), "{id} is deleted")?,
        }
        Ok(0)
    }

    /// Prints one that was created: its id only, or as [`print`](Self::print).
    pub(crate) async fn print_new(
        &self,
        new: &Workspace,
        id_only: bool,
        json: bool,
    ) -> anyhow::Result<u8> {
        if id_only {
            writeln!(io::stdout(), "{}", new.id())?;
            return Ok(0);
        }
        self.print(&new.info().await?, json)
    }

    /// Prints everything about one as JSON, or its state in one line.
    pub(crate) fn print(&self, info: &WorkspaceInfo, json: bool) -> anyhow::Result<u8> {
        if json {
            print_json(&(self.as_json)(info));
            return Ok(0);
        }
        let name = info.name.as_ref();
        let name = name.map_or(String::new(), |name| format!(" ({name})"));
        writeln!(io::stdout(), "{}{name} is {}", info.id, info.state)?;
        Ok(0)
    }
}

/// Prints the ids of those that `reap-expired` has deleted.
pub(crate) fn print_reaped(ids: &[String], json: bool) -> anyhow::Result<u8> {
    if json {
        print_json(&json!({ "deleted": ids }));
        return Ok(0);
    }
    for id in ids {
        writeln!(io::stdout(), "{id}")?;
    }
    Ok(0)
}

/// Returns the state, and why it is stopped unless somebody has stopped it.
pub(crate) fn describe_state(info: &WorkspaceInfo) -> String {
    let state = info.state.to_string();
    match &info.stop_reason {
        Some(reason) if *reason != state => format!("{state}: {reason}"),
        _ => state,
    }
}
