//! Commands and how they end.

use std::time::{Duration, Instant};

use super::{
    check::{CheckError, CheckResult, ensure, ensure_eq},
    context::CheckContext,
};
use crate::{
    error::Error,
    process::{Cause, Command, ExecFailureKind, Signal},
};

pub(super) async fn no_shell(context: CheckContext) -> CheckResult {
    let words = ["echo", "$HOME", "*", "a  b", "; false", "`id`"];
    let output = context.vm.exec(words).await?;
    let expected = "$HOME * a  b ; false `id`\n";
    ensure_eq(
        "what echo prints",
        output.stdout_text(),
        expected.to_owned(),
    )
}

pub(super) async fn shell(context: CheckContext) -> CheckResult {
    let printed = context.shell("for word in a b; do echo $word; done | cat; echo err >&2");
    ensure_eq("what it prints", printed.await?, "a\nb\n".to_owned())
}

pub(super) async fn nonzero_exit(context: CheckContext) -> CheckResult {
    let output = context.output("echo out; echo err >&2; exit 42").await?;
    ensure_eq("the code", output.code(), Some(42))?;
    ensure_eq("standard output", output.stdout_text(), "out\n".to_owned())?;
    ensure_eq("standard error", output.stderr_text(), "err\n".to_owned())?;
    let killed = context.output("kill -9 $$").await?;
    let cause = killed.exit.map(|exit| exit.cause);
    ensure_eq("the cause", cause, Some(Cause::Signal(Signal::KILL)))
}

pub(super) async fn missing_program(context: CheckContext) -> CheckResult {
    match context.vm.exec(["/no/such/program"]).await {
        Err(Error::Exec(failure)) => ensure_eq("the kind", failure.kind, ExecFailureKind::NotFound),
        other => Err(CheckError::failed(format!("the result is {other:?}"))),
    }
}

pub(super) async fn environment(context: CheckContext) -> CheckResult {
    let line = "echo $WORD; pwd";
    let command = Command::shell(line)
        .env("WORD", "a word")
        .current_dir("/etc");
    let output = context.vm.exec_command(command).await?;
    ensure_eq(
        "what it sees",
        output.stdout_text(),
        "a word\n/etc\n".to_owned(),
    )
}

pub(super) async fn timeout(context: CheckContext) -> CheckResult {
    let started = Instant::now();
    context.vm.exec(["true"]).await?;
    // Long enough for a shell to start on a busy machine.
    let limit = 20 * started.elapsed();
    let limit = limit.clamp(Duration::from_secs(2), Duration::from_secs(20));
    let command = Command::shell("echo started; sleep 1000").timeout(limit);
    let started = Instant::now();
    match context.vm.exec_command(command).await {
        Err(Error::ExecTimeout { partial, .. }) => {
            ensure_eq(
                "what it printed",
                partial.stdout_text(),
                "started\n".to_owned(),
            )?;
        }
        other => return Err(CheckError::failed(format!("the result is {other:?}"))),
    }
    let took = started.elapsed();
    ensure(took < 2 * limit, || format!("it took {took:?}"))
}

/// Dropping the stream of a command kills it and its children.
pub(super) async fn cancelled(context: CheckContext) -> CheckResult {
    let mark = "31415926";
    let line = format!("sleep {mark} & sleep {mark}; wait");
    let mut stream = context.vm.exec_stream(Command::shell(line))?;
    stream.next().await?;
    drop(stream);
    // This shell ends when none of the processes is left.
    let gone =
        format!("while grep -lx 'sleep.{mark}.' /proc/[0-9]*/cmdline 2>/dev/null; do :; done");
    let command = Command::shell(gone).timeout(Duration::from_secs(40));
    let ended = context.vm.exec_command(command).await;
    ended.map(drop).map_err(|_| CheckError::failed("it runs"))
}

pub(super) async fn background(context: CheckContext) -> CheckResult {
    let command = Command::shell("echo started; exec cat")
        .tag("conformance")
        .stdin_stream();
    let process = context.vm.spawn(command).await?;
    let found = context.vm.processes().get("conformance").await?;
    ensure_eq(
        "its number",
        found.map(|found| found.id()),
        Some(process.id()),
    )?;
    ensure_eq("how it ends", process.kill().await?.cause, Cause::Killed)?;
    process.forget().await?;
    let listed = context.vm.processes().list().await?;
    ensure(listed.is_empty(), || format!("still known: {listed:?}"))
}
