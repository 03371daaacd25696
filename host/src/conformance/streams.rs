//! Bytes on their way.

use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    scene::Scene,
    unmet::{Seen, Unmet, demand, same},
};
use crate::process::{Command, ExecEvent};

/// Enough to be more than every buffer on the way holds.
const MUCH: usize = 8 * 1024 * 1024;

pub(super) async fn order(scene: Scene) -> Seen {
    let mut stream = scene.vm.exec_stream(Command::shell("seq 1000; exit 3"))?;
    let mut told = Vec::new();
    let mut printed = Vec::new();
    while let Some(event) = stream.next().await? {
        let name = match event {
            ExecEvent::Started { .. } => "started",
            ExecEvent::Stdout(bytes) => {
                printed.extend(bytes);
                "stdout"
            }
            ExecEvent::Exited(exit) => {
                same("the code", exit.code(), Some(3))?;
                "exited"
            }
            other => return Err(Unmet::failed(format!("it tells {other:?}"))),
        };
        if told.last() != Some(&name) {
            told.push(name);
        }
    }
    same("what is told", told, vec!["started", "stdout", "exited"])?;
    let expected: String = (1..=1000).map(|number| format!("{number}\n")).collect();
    demand(printed == expected.as_bytes(), || {
        format!("{} bytes came, and not those", printed.len())
    })
}

pub(super) async fn stdin(scene: Scene) -> Seen {
    let command = Command::new("sha256sum").stdin(pattern(MUCH));
    let output = scene.vm.exec_command(command).await?;
    let digest = output.stdout_text();
    let digest = digest.split_whitespace().next().unwrap_or_default();
    same(
        "the digest in the guest",
        digest,
        &*hex_digest(&pattern(MUCH)),
    )?;
    let empty = scene.vm.exec_with(["cat"], |command| command.stdin(""));
    same("what cat prints", empty.await?.stdout.len(), 0)
}

pub(super) async fn much(scene: Scene) -> Seen {
    let bytes = pattern(MUCH);
    let command = Command::new("cat")
        .stdin(bytes.clone())
        .max_output(2 * MUCH);
    let output = scene.vm.exec_command(command).await?;
    same("how much came", output.stdout.len(), MUCH)?;
    same("the digest", hex_digest(&output.stdout), hex_digest(&bytes))
}

/// A reader that takes a little at a time, and sends what it has read back,
/// before it takes more.
pub(super) async fn backpressure(scene: Scene) -> Seen {
    const ROUNDS: usize = 64;
    let line = format!("head -c {MUCH} /dev/zero; cat");
    let command = Command::shell(line).stdin_stream();
    let mut parts = scene.vm.exec_stream(command)?.into_parts();
    let mut piece = vec![0; 16 * 1024];
    for _ in 0..ROUNDS {
        parts.stdout.read_exact(&mut piece).await?;
        scene.shell("true").await?;
    }
    parts.stdin.write_all(b"the end").await?;
    parts.stdin.shutdown().await?;
    let mut rest = Vec::new();
    parts.stdout.read_to_end(&mut rest).await?;
    let expected = MUCH - ROUNDS * piece.len() + b"the end".len();
    same("how much came", rest.len(), expected)?;
    demand(rest.ends_with(b"the end"), || {
        "the end is not at the end".to_owned()
    })?;
    drop(parts.stderr);
    same("the code", parts.waiter.wait().await?.code(), Some(0))
}

/// Bytes that no shift or repetition leaves unchanged.
pub(super) fn pattern(count: usize) -> Vec<u8> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let bytes = (0..count).map(|index| index.wrapping_mul(2_654_435_761).to_be_bytes()[0]);
    bytes.collect()
}

fn hex_digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
