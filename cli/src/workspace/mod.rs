//! `vmcell workspace`: VMs with a disk and snapshots, which go on when this
//! program ends. A process of its own runs each of them: [`keep`].

mod arguments;
mod create;
mod exec;
mod info;
mod keep;
mod lifecycle;
mod list;
mod status;
mod update;

pub(crate) use arguments::WorkspaceArguments;
pub(crate) use keep::keep;

use std::env;

use anyhow::Context;
use arguments::WorkspaceCommand;
use vmcell::workspace::{Keeper, Workspace, Workspaces};

use crate::runtime::block_on;

pub(crate) fn workspace(arguments: WorkspaceArguments) -> anyhow::Result<u8> {
    let json = arguments.json;
    match arguments.command {
        WorkspaceCommand::Create(arguments) => create::create(*arguments, json),
        WorkspaceCommand::List => block_on(list::list(json)),
        WorkspaceCommand::Status(arguments) => block_on(status::status(&arguments.id, json)),
        WorkspaceCommand::Start(arguments) => block_on(lifecycle::start(&arguments.id, json)),
        WorkspaceCommand::Stop(arguments) => block_on(lifecycle::stop(&arguments.id, json)),
        WorkspaceCommand::Pause(arguments) => block_on(lifecycle::pause(&arguments.id, json)),
        WorkspaceCommand::Resume(arguments) => block_on(lifecycle::resume(&arguments.id, json)),
        WorkspaceCommand::Delete(arguments) => block_on(lifecycle::delete(&arguments.id, json)),
        WorkspaceCommand::Update(arguments) => block_on(update::update(arguments, json)),
        WorkspaceCommand::Exec(arguments) => exec::exec(*arguments),
    }
}

/// Returns the workspaces of this user, which this program runs in processes of
/// their own.
fn open() -> anyhow::Result<Workspaces> {
    let program = env::current_exe().context("cannot find this program")?;
    let keeper = Keeper::new(program).arg("keep-workspace");
    Ok(Workspaces::open()?.keeper(keeper))
}

/// Finds a workspace by its id or its name.
async fn find(id: &str) -> anyhow::Result<Workspace> {
    Ok(open()?.get(id).await?)
}
