//! `vmcell logs`: what a process has printed.

use std::collections::VecDeque;

use serde_json::json;
use vmcell::{
    Command, Error, ExecEvent, ExecStream, Offsets, OutputKind, ProcessInfo, ReadFrom, Vm,
};

use crate::{
    arguments::LogsArguments,
    exit_code,
    failure::print_json,
    output::{Outputs, Written},
    ps,
    runtime::block_on,
};

pub(crate) fn logs(arguments: LogsArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let vm = Vm::attach(&arguments.id).await?;
        let process = vm.processes().find(arguments.process).await?;
        let list = vm.processes().list().await?;
        let info = list.into_iter().find(|info| info.id == process.id());
        let log = Log {
            events: process.attach(ReadFrom::Start)?,
            // One that was forgotten meanwhile is missed when it is read.
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

/// What there is to read.
struct Log {
    events: ExecStream,
    /// Where to end. None: where the process does.
    until: Option<Offsets>,
}

impl Log {
    async fn next(&mut self) -> Result<Option<ExecEvent>, Error> {
        let there = self.events.offsets();
        let complete = self
            .until
            .is_some_and(|until| there.stdout >= until.stdout && there.stderr >= until.stderr);
        if complete {
            return Ok(None);
        }
        self.events.next().await
    }
}

async fn print(mut log: Log) -> anyhow::Result<u8> {
    let outputs = Outputs::start();
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
    // What came before a failure is worth printing too.
    let written = outputs.finish().await?;
    read?;
    Ok(match written {
        Written::All => 0,
        Written::Unread => exit_code::UNREAD,
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
        "process": ps::process_as_json(&info),
        "stdout_dropped_bytes": stdout.dropped,
        "stderr_dropped_bytes": stderr.dropped,
        "stdout": stdout.into_text(),
        "stderr": stderr.into_text(),
    }));
    Ok(0)
}

/// The end of an output, no more of it than a guest may keep.
#[derive(Default)]
struct Tail {
    bytes: VecDeque<u8>,
    /// How many bytes came before.
    dropped: u64,
}

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(Command::MAX_KEPT as usize);
        self.bytes.drain(..excess);
        self.dropped += excess as u64;
    }

    /// What stood before a gap would look as if it were followed by what stood
    /// behind it.
    fn gap(&mut self, bytes: u64) {
        self.dropped = self.dropped.saturating_add(bytes + self.bytes.len() as u64);
        self.bytes.clear();
    }

    fn into_text(self) -> String {
        String::from_utf8_lossy(&Vec::from(self.bytes)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_an_output_is_kept() {
        let mut tail = Tail::default();
        tail.gap(5);
        tail.add(b"before");
        tail.gap(10);
        tail.add(&vec![b'x'; Command::MAX_KEPT as usize]);
        tail.add(b"end");
        assert_eq!(tail.dropped, 5 + 6 + 10 + 3);
        let text = tail.into_text();
        assert_eq!(text.len(), Command::MAX_KEPT as usize);
        assert!(text.ends_with("xend"));
    }
}
