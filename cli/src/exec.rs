//! `vmcell exec`: runs a command in a VM that another program owns.

use std::io::{self, Write};

use serde_json::json;
use vmcell::Vm;
use vmcell_cli::signals::Signals;

use crate::{
    arguments::ExecArguments, command::PreparedCommand, failure::print_json, foreground,
    runtime::block_on,
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
        let vm = Vm::attach(&id).await?;
        if detach {
            return in_background(&vm, prepared, id_only).await;
        }
        let mut signals = Signals::new()?;
        let outcome = foreground::run(&vm, prepared, &mut signals).await?;
        if let Some(result) = &outcome.result {
            print_json(result);
        }
        // The caller's next step may rely on the command being gone.
        outcome.wait_until_ended(&vm).await;
        Ok(outcome.code)
    })
}

async fn in_background(vm: &Vm, prepared: PreparedCommand, id_only: bool) -> anyhow::Result<u8> {
    let process = vm.spawn(prepared.command).await?;
    if prepared.json {
        print_json(&json!({
            "sandbox_id": vm.id(),
            "id": process.id().0,
            "pid": process.pid(),
            "tag": process.tag(),
        }));
    } else if id_only {
        writeln!(io::stdout(), "{}", process.id())?;
    } else {
        writeln!(io::stdout(), "{}", process.tag())?;
    }
    Ok(0)
}
