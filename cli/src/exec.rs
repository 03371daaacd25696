//! `vmcell exec`: runs a command in a VM that another program owns.

use std::io::{self, Write};

use vmcell_cli::signals::Signals;

use crate::{
    arguments::ExecArguments, command::PreparedCommand, failure::print_json, foreground,
    runtime::block_on, target::Target,
};

pub(crate) fn exec(arguments: ExecArguments) -> anyhow::Result<u8> {
    let ExecArguments {
        id,
        detach,
        id_only,
        options,
        command,
    } = arguments;
    let prepared = options.prepare(command)?;
    block_on(async move {
        let target = Target::attach(&id).await?;
        match detach {
            true => in_background(&target, prepared, id_only).await,
            false => in_foreground(&target, prepared).await,
        }
    })
}

/// Runs a command until it ends, and returns its exit code.
pub(crate) async fn in_foreground(
    target: &Target,
    prepared: PreparedCommand,
) -> anyhow::Result<u8> {
    let mut signals = Signals::new()?;
    let mut outcome = foreground::run(target, prepared, &mut signals).await?;
    if let Some(result) = &mut outcome.result {
        target.add_to(result);
        print_json(result);
    }
    // The caller's next step may rely on the command being gone.
    outcome.wait_until_ended(&target.vm).await;
    Ok(outcome.code)
}

/// Starts a command, and prints its tag or its id.
async fn in_background(
    target: &Target,
    prepared: PreparedCommand,
    id_only: bool,
) -> anyhow::Result<u8> {
    let command = target.grant(prepared.command, &prepared.secrets).await?;
    let process = target.vm.spawn(command).await?;
    if prepared.json {
        let mut object = target.as_json();
        object["id"] = process.id().0.into();
        object["pid"] = process.pid().into();
        object["tag"] = process.tag().into();
        print_json(&object);
    } else if id_only {
        writeln!(io::stdout(), "{}", process.id())?;
    } else {
        writeln!(io::stdout(), "{}", process.tag())?;
    }
    Ok(0)
}
