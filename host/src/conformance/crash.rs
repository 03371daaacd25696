//! Crashes of what a VM depends on.

use std::{
    process::{Child, Command as Program, Stdio},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::unix::pipe,
};

use super::{
    check::{CheckError, CheckResult, ensure, ensure_error_code},
    context::CheckContext,
    host_resources::{Descendants, resources_of, wait_gone},
    suite::RUNNING_PREFIX,
};
use crate::{
    process::Command,
    run_folder::{RunFolder, sweep},
};

/// How soon a program must be notified that its VM is gone.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) async fn vmm(context: CheckContext) -> CheckResult {
    let vm = context.start().await?;
    let mut stream = vm.exec_stream(Command::new("cat").stdin_stream())?;
    stream.next().await?;
    vm.crash();
    let crashed = Instant::now();
    ensure_error_code("the command under way", stream.next().await, "gone")?;
    let took = crashed.elapsed();
    ensure(took < NOTICE_TIMEOUT, || format!("it took {took:?}"))?;
    ensure_error_code("the next command", vm.exec(["true"]).await, "gone")
}

/// All processes of a killed program end with it, and the program that starts
/// the next VM removes its other resources.
pub(super) async fn program(context: CheckContext) -> CheckResult {
    let Some(program) = &context.program else {
        let reason = "no program was given that can be killed: see Suite::crash_program";
        return Err(CheckError::Skipped(reason.to_owned()));
    };
    let (mut program, id) = run(program()).await?;
    let descendants = Descendants::of(program.0.id());
    ensure(!descendants.is_empty(), || "no VM process".to_owned())?;
    program.0.kill()?;
    program.0.wait()?;
    wait_gone(|| descendants.alive()).await?;
    sweep(&RunFolder::base());
    wait_gone(|| resources_of(&id)).await
}

/// A child process that is killed when this is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program and waits until its VM runs.
async fn run(mut program: Program) -> Result<(KillOnDrop, String), CheckError> {
    let (reader, writer) = std::io::pipe()?;
    let child = program.stdin(Stdio::null()).stdout(writer).spawn()?;
    let child = KillOnDrop(child);
    // Its copy of the writing end would keep the pipe open.
    drop(program);
    let mut lines = BufReader::new(pipe::Receiver::from_owned_fd(reader.into())?).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(id) = line.strip_prefix(RUNNING_PREFIX) {
            return Ok((child, id.to_owned()));
        }
    }
    Err(CheckError::failed("the program ended before its VM ran"))
}
