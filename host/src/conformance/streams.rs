//! Streams of input and output.

use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    check::{CheckError, CheckResult, ensure, ensure_eq},
    context::CheckContext,
};
use crate::process::{Command, ExecEvent};

/// More than all buffers on the way hold.
const LARGE: usize = 8 * 1024 * 1024;

pub(super) async fn order(context: CheckContext) -> CheckResult {
    let mut stream = context.vm.exec_stream(Command::shell("seq 1000; exit 3"))?;
    let mut events = Vec::new();
    let mut printed = Vec::new();
    while let Some(event) = stream.next().await? {
        let name = match event {
            ExecEvent::Started { .. } => "started",
            ExecEvent::Stdout(bytes) => {
                printed.extend(bytes);
                "stdout"
            }
            ExecEvent::Exited(exit) => {
                ensure_eq("the code", exit.code(), Some(3))?;
                "exited"
            }
            other => return Err(CheckError::failed(format!("unexpected event {other:?}"))),
        };
        if events.last() != Some(&name) {
            events.push(name);
        }
    }
    ensure_eq("the events", events, vec!["started", "stdout", "exited"])?;
    let expected: String = (1..=1000).map(|number| format!("{number}\n")).collect();
    ensure(printed == expected.as_bytes(), || {
        format!("{} bytes came, and not those", printed.len())
    })
}

pub(super) async fn stdin(context: CheckContext) -> CheckResult {
    let command = Command::new("sha256sum").stdin(pattern(LARGE));
    let output = context.vm.exec_command(command).await?;
    let digest = output.stdout_text();
    let digest = digest.split_whitespace().next().unwrap_or_default();
    ensure_eq(
        "the digest in the guest",
        digest,
        &*hex_digest(&pattern(LARGE)),
    )?;
    let empty = context.vm.exec_with(["cat"], |command| command.stdin(""));
    ensure_eq("what cat prints", empty.await?.stdout.len(), 0)
}

pub(super) async fn large_output(context: CheckContext) -> CheckResult {
    let bytes = pattern(LARGE);
    let command = Command::new("cat")
        .stdin(bytes.clone())
        .max_output(2 * LARGE);
    let output = context.vm.exec_command(command).await?;
    ensure_eq("how much came", output.stdout.len(), LARGE)?;
    ensure_eq("the digest", hex_digest(&output.stdout), hex_digest(&bytes))
}

/// Reads a little at a time, with another command between the reads, while the
/// command waits for its input.
pub(super) async fn backpressure(context: CheckContext) -> CheckResult {
    const ROUNDS: usize = 64;
    let line = format!("head -c {LARGE} /dev/zero; cat");
    let command = Command::shell(line).stdin_stream();
    let mut parts = context.vm.exec_stream(command)?.into_parts();
    let mut piece = vec![0; 16 * 1024];
    for _ in 0..ROUNDS {
        parts.stdout.read_exact(&mut piece).await?;
        context.shell("true").await?;
    }
    parts.stdin.write_all(b"the end").await?;
    parts.stdin.shutdown().await?;
    let mut rest = Vec::new();
    parts.stdout.read_to_end(&mut rest).await?;
    let expected = LARGE - ROUNDS * piece.len() + b"the end".len();
    ensure_eq("how much came", rest.len(), expected)?;
    ensure(rest.ends_with(b"the end"), || {
        "the end is not at the end".to_owned()
    })?;
    drop(parts.stderr);
    ensure_eq("the code", parts.waiter.wait().await?.code(), Some(0))
}

/// Returns bytes in which every shift and repetition would be noticed.
pub(super) fn pattern(count: usize) -> Vec<u8> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let bytes = (0..count).map(|index| index.wrapping_mul(2_654_435_761).to_be_bytes()[0]);
    bytes.collect()
}

fn hex_digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
