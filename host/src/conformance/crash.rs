//! The end of what a VM depends on.

use std::{
    process::{Child, Command as Program, Stdio},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::unix::pipe,
};

use super::{
    scene::Scene,
    suite::RUNS,
    traces::{Kin, named, until_none},
    unmet::{Seen, Unmet, demand, refused},
};
use crate::{
    process::Command,
    run_folder::{RunFolder, sweep},
};

/// How soon a program must hear that its VM is gone.
const SOON: Duration = Duration::from_secs(1);

pub(super) async fn vmm(scene: Scene) -> Seen {
    let vm = scene.start().await?;
    let mut stream = vm.exec_stream(Command::new("cat").stdin_stream())?;
    stream.next().await?;
    vm.crash();
    let crashed = Instant::now();
    refused("the command under way", stream.next().await, "gone")?;
    let took = crashed.elapsed();
    demand(took < SOON, || format!("it took {took:?} to tell"))?;
    refused("the next command", vm.exec(["true"]).await, "gone")
}

/// All processes of a program that was killed end with it, and what else it had
/// is removed by who starts the next VM.
pub(super) async fn program(scene: Scene) -> Seen {
    let Some(program) = &scene.program else {
        let reason = "no program was given that can be killed: see Suite::program";
        return Err(Unmet::Skipped(reason.to_owned()));
    };
    let (mut program, id) = run(program()).await?;
    let kin = Kin::of(program.0.id());
    demand(!kin.is_empty(), || "its VM has no process".to_owned())?;
    program.0.kill()?;
    program.0.wait()?;
    until_none(|| kin.alive()).await?;
    sweep(&RunFolder::base());
    until_none(|| named(&id)).await
}

/// A program that is ended when this is dropped.
struct Doomed(Child);

impl Drop for Doomed {
    fn drop(&mut self) {
        // It fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program and waits until its VM runs.
async fn run(mut program: Program) -> Result<(Doomed, String), Unmet> {
    let (reader, writer) = std::io::pipe()?;
    let child = program.stdin(Stdio::null()).stdout(writer).spawn()?;
    let child = Doomed(child);
    // Its copy of the writing end would keep the pipe open.
    drop(program);
    let mut lines = BufReader::new(pipe::Receiver::from_owned_fd(reader.into())?).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(id) = line.strip_prefix(RUNS) {
            return Ok((child, id.to_owned()));
        }
    }
    Err(Unmet::failed("the program ended before its VM ran"))
}
