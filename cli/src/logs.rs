//! `vmcell logs`: prints the kept output of a process.

use serde_json::json;
use vmcell::{
    Error, ExecEvent, ExecFailure, ExecStream, Offsets, OutputKind, ProcessInfo, ReadFrom,
};

use crate::{
    arguments::LogsArguments,
    exit_code,
    failure::print_json,
    output::{Outputs, Written},
    runtime::block_on,
    tail::Tail,
    target,
};

pub(crate) fn logs(arguments: LogsArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let vm = target::attach(&arguments.id).await?;
        let named = arguments.process;
        let process = vm.processes().get(named.clone()).await?;
        let process = process.ok_or_else(|| Error::from(ExecFailure::not_found(&named)))?;
        let list = vm.processes().list().await?;
        let info = list.into_iter().find(|info| info.id == process.id());
        let log = Log {
            events: process.attach(ReadFrom::Start)?,
            // If the VM has forgotten the process meanwhile, reading fails.
            until: info
                .as_ref()
                .filter(|_| !arguments.follow)
                .map(|info| Offsets {
                    stdout: info.stdout.end,
                    stderr: info.stderr.end,
                }),
        };
        match info.filter(|_| arguments.json) {
            Some(info) => print_collected(vm.id(), info, log).await,
            None => print(log).await,
        }
    })
}

/// The output to read.
struct Log {
    events: ExecStream,
    /// Where to stop reading. `None`: at the process's exit.
    until: Option<Offsets>,
}

impl Log {
    async fn next(&mut self) -> Result<Option<ExecEvent>, Error> {
        let position = self.events.offsets();
        let complete = self.until.is_some_and(|until| {
            position.stdout >= until.stdout && position.stderr >= until.stderr
        });
        if complete {
            return Ok(None);
        }
        self.events.next().await
    }
}

async fn print(mut log: Log) -> anyhow::Result<u8> {
    let outputs = Outputs::for_command();
    let read = loop {
        match log.next().await {
            Ok(Some(event)) => {
                if !outputs.write(event).await {
                    break Ok(());
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // Print what came before a failure.
    let written = outputs.finish().await?;
    read?;
    Ok(match written {
        Written::All => 0,
        Written::ReaderGone => exit_code::BROKEN_PIPE,
    })
}

async fn print_collected(vm: &str, mut info: ProcessInfo, mut log: Log) -> anyhow::Result<u8> {
    let (mut stdout, mut stderr) = (Tail::default(), Tail::default());
    while let Some(event) = log.next().await? {
        match event {
            ExecEvent::Stdout(bytes) => stdout.add(&bytes),
            ExecEvent::Stderr(bytes) => stderr.add(&bytes),
            ExecEvent::Gap { output, bytes } => match output {
                OutputKind::Stdout => stdout.gap(bytes),
                OutputKind::Stderr => stderr.gap(bytes),
            },
            ExecEvent::Exited(exit) => {
                info.stdout.end = exit.stdout_bytes;
                info.stderr.end = exit.stderr_bytes;
                info.exit = Some(exit);
            }
            _ => {}
        }
    }
    print_json(&json!({
        "sandbox_id": vm,
        "process": info,
        "stdout_dropped_bytes": stdout.dropped,
        "stderr_dropped_bytes": stderr.dropped,
        "stdout": stdout.into_text(),
        "stderr": stderr.into_text(),
    }));
    Ok(0)
}
