//! Commands, however they end.

use std::time::{Duration, Instant};

use super::{
    scene::Scene,
    unmet::{Seen, Unmet, demand, same},
};
use crate::{
    error::Error,
    process::{Cause, Command, ExecFailureKind},
};

pub(super) async fn arguments_are_no_shell(scene: Scene) -> Seen {
    let words = ["echo", "$HOME", "*", "a  b", "; false", "`id`"];
    let output = scene.vm.exec(words).await?;
    let expected = "$HOME * a  b ; false `id`\n";
    same(
        "what echo prints",
        output.stdout_text(),
        expected.to_owned(),
    )
}

pub(super) async fn shell(scene: Scene) -> Seen {
    let printed = scene.shell("for word in a b; do echo $word; done | cat; echo err >&2");
    same("what it prints", printed.await?, "a\nb\n".to_owned())
}

pub(super) async fn nonzero_exit(scene: Scene) -> Seen {
    let output = scene.output("echo out; echo err >&2; exit 42").await?;
    same("the code", output.code(), Some(42))?;
    same("standard output", output.stdout_text(), "out\n".to_owned())?;
    same("standard error", output.stderr_text(), "err\n".to_owned())?;
    let killed = scene.output("kill -9 $$").await?;
    let cause = killed.exit.map(|exit| exit.cause);
    same("the cause", cause, Some(Cause::Signal(9)))
}

pub(super) async fn missing_program(scene: Scene) -> Seen {
    match scene.vm.exec(["/no/such/program"]).await {
        Err(Error::Exec(failure)) => same("the kind", failure.kind, ExecFailureKind::NotFound),
        other => Err(Unmet::failed(format!("it comes to {other:?}"))),
    }
}

pub(super) async fn surroundings(scene: Scene) -> Seen {
    let line = "echo $WORD; pwd";
    let command = Command::shell(line)
        .env("WORD", "a word")
        .current_dir("/etc");
    let output = scene.vm.exec_command(command).await?;
    same(
        "what it sees",
        output.stdout_text(),
        "a word\n/etc\n".to_owned(),
    )
}

pub(super) async fn timeout(scene: Scene) -> Seen {
    let begun = Instant::now();
    scene.vm.exec(["true"]).await?;
    // Long enough for a shell to begin, however busy the machine is.
    let limit = 20 * begun.elapsed();
    let limit = limit.clamp(Duration::from_secs(2), Duration::from_secs(20));
    let command = Command::shell("echo begun; sleep 1000").timeout(limit);
    let begun = Instant::now();
    match scene.vm.exec_command(command).await {
        Err(Error::ExecTimeout { partial, .. }) => {
            same(
                "what it printed",
                partial.stdout_text(),
                "begun\n".to_owned(),
            )?;
        }
        other => return Err(Unmet::failed(format!("it comes to {other:?}"))),
    }
    let took = begun.elapsed();
    demand(took < 2 * limit, || format!("it took {took:?}"))
}

/// The command and its children are gone soon after nobody waits for them.
pub(super) async fn cancelled(scene: Scene) -> Seen {
    let mark = "31415926";
    let line = format!("sleep {mark} & sleep {mark}; wait");
    let mut stream = scene.vm.exec_stream(Command::shell(line))?;
    stream.next().await?;
    drop(stream);
    // The shell that looks ends when there is nothing left to see.
    let gone =
        format!("while grep -lx 'sleep.{mark}.' /proc/[0-9]*/cmdline 2>/dev/null; do :; done");
    let command = Command::shell(gone).timeout(Duration::from_secs(40));
    let looked = scene.vm.exec_command(command).await;
    looked.map(drop).map_err(|_| Unmet::failed("it goes on"))
}

pub(super) async fn background(scene: Scene) -> Seen {
    let command = Command::shell("echo begun; exec cat")
        .tag("conformance")
        .stdin_stream();
    let process = scene.vm.spawn(command).await?;
    let found = scene.vm.processes().find("conformance").await?;
    same("its number", found.id(), process.id())?;
    same("how it ends", process.kill().await?.cause, Cause::Killed)?;
    process.forget().await?;
    let listed = scene.vm.processes().list().await?;
    demand(listed.is_empty(), || format!("still known: {listed:?}"))
}
