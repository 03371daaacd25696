//! `vmcell workspace`: VMs with a disk and snapshots, which go on when this
//! program ends. A process of its own runs each of them: [`keep`].

mod arguments;
mod content;
mod copy;
mod create;
mod diff;
mod disk;
mod exec;
mod file;
mod info;
mod keep;
mod lifecycle;
mod list;
mod logs;
mod patch;
mod service;
mod shell;
mod snapshot;
mod status;
mod update;

pub(crate) use arguments::WorkspaceArguments;
pub(crate) use info::date;
pub(crate) use keep::keep;
pub(crate) use status::print_properties;

use std::env;

use anyhow::Context;
use arguments::WorkspaceCommand;
use vmcell::workspace::{Keeper, Workspace, Workspaces};

use crate::{kept_vm::KeptVms, runtime::block_on, target::Target};

pub(crate) fn workspace(arguments: WorkspaceArguments) -> anyhow::Result<u8> {
    let json = arguments.json;
    match arguments.command {
        WorkspaceCommand::Create(arguments) => create::create(*arguments, json),
        WorkspaceCommand::List => block_on(list::list(json)),
        WorkspaceCommand::Status(arguments) => block_on(status::status(&arguments.id, json)),
        WorkspaceCommand::Start(arguments) => block_on(WORKSPACES.start(&arguments.id, json)),
        WorkspaceCommand::Stop(arguments) => block_on(WORKSPACES.stop(&arguments.id, json)),
        WorkspaceCommand::Pause(arguments) => block_on(lifecycle::pause(&arguments.id, json)),
        WorkspaceCommand::Resume(arguments) => block_on(lifecycle::resume(&arguments.id, json)),
        WorkspaceCommand::Delete(arguments) => block_on(WORKSPACES.delete(&arguments.id, json)),
        WorkspaceCommand::Update(arguments) => block_on(update::update(arguments, json)),
        WorkspaceCommand::Exec(arguments) => exec::exec(*arguments),
        WorkspaceCommand::Sync(arguments) => block_on(copy::sync(arguments, json)),
        WorkspaceCommand::File(arguments) => block_on(file::file(arguments, json)),
        WorkspaceCommand::Export(arguments) => block_on(copy::export(arguments, json)),
        WorkspaceCommand::Patch(arguments) => block_on(patch::patch(arguments, json)),
        WorkspaceCommand::Disk(arguments) => block_on(disk::disk(arguments, json)),
        WorkspaceCommand::Diff(arguments) => block_on(diff::diff(arguments, json)),
        WorkspaceCommand::Logs(arguments) => block_on(logs::logs(&arguments.id, json)),
        WorkspaceCommand::Touch(arguments) => block_on(lifecycle::touch(&arguments.id, json)),
        WorkspaceCommand::ReapExpired => block_on(lifecycle::reap_expired(json)),
        WorkspaceCommand::Snapshot(arguments) => block_on(snapshot::snapshot(arguments, json)),
        WorkspaceCommand::Reset(arguments) => block_on(snapshot::reset(arguments, json)),
        WorkspaceCommand::Fork(arguments) => block_on(snapshot::fork(arguments, json)),
        WorkspaceCommand::Service(arguments) => block_on(service::service(arguments, json)),
        WorkspaceCommand::Shell(arguments) => block_on(shell::shell(arguments, json)),
    }
}

/// Returns the workspaces of this user, which this program runs in processes of
/// their own.
pub(crate) fn open() -> anyhow::Result<Workspaces> {
    Ok(Workspaces::open()?.keeper(keeper()?))
}

/// Returns this program, as one that keeps a workspace running.
pub(crate) fn keeper() -> anyhow::Result<Keeper> {
    let program = env::current_exe().context("cannot find this program")?;
    Ok(Keeper::new(program).arg("keep-workspace"))
}

const WORKSPACES: KeptVms = KeptVms {
    noun: "workspace",
    id_key: "workspace_id",
    open,
    as_json: info::as_json,
};

/// Finds a workspace by its id or its name.
async fn find(id: &str) -> anyhow::Result<Workspace> {
    WORKSPACES.find(id).await
}

/// Returns the VM of a workspace that runs.
async fn attach(id: &str) -> anyhow::Result<Target> {
    let workspace = find(id).await?;
    let vm = workspace.vm().await?;
    Ok(Target::of_workspace(workspace, vm))
}
