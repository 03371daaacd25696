//! Processes in the background, and those who observe them.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use futures_util::future::try_join_all;
use vmcell::{Cause, Command, ExecEvent, OutputKind, ReadFrom, Vm};

use crate::{arguments::Kind, pattern::Pattern, random::Random};

/// Starts a process that prints much, and reads it several times at once: each reader gets the
/// bytes at their offsets, or is told how many are missing.
pub(super) async fn observe(vm: &Vm, kind: Kind, random: &mut Random) -> Result<()> {
    let pattern = Pattern::new(random.size_below(300_000) as u64 + 1);
    let tag = format!("job-{}", random.name());
    let kept = 1 << (random.below(8) + 13);
    let line = format!("seq 1 {}; exec sleep 1000", pattern.count);
    let command = Command::shell(line).tag(&tag).keep_output(kept);
    let process = vm.spawn(command).await?;
    let readers = (0..random.below(3) + 1).map(|_| {
        let mut random = random.fork();
        let pattern = &pattern;
        let tag = &tag;
        async move {
            tokio::time::sleep(random.time_below(Duration::from_millis(300))).await;
            read(vm, tag, pattern, &mut random).await
        }
    });
    try_join_all(readers.collect::<Vec<_>>()).await?;
    let exit = process.kill().await?;
    ensure!(exit.cause == Cause::Killed, "{exit:?}");
    // Without cgroups it is not known.
    let has_cgroups = kind == Kind::Qemu;
    ensure!(exit.tree_ended == Some(true) || !has_cgroups, "{exit:?}");
    ensure!(exit.stdout_bytes == pattern.len(), "{exit:?}");
    process.forget().await?;
    Ok(())
}

/// Reads from the start to the end, and stops to go on at its offset now and then.
async fn read(vm: &Vm, tag: &str, pattern: &Pattern, random: &mut Random) -> Result<()> {
    let mut stream = vm.processes().attach(tag, ReadFrom::Start)?;
    let mut offset = 0;
    while offset < pattern.len() {
        match stream.next().await? {
            Some(ExecEvent::Stdout(bytes)) => {
                pattern.check(offset, &bytes)?;
                offset += bytes.len() as u64;
            }
            Some(ExecEvent::Gap {
                output: OutputKind::Stdout,
                bytes,
            }) => offset += bytes,
            Some(ExecEvent::Started { .. }) => {}
            other => bail!("{other:?} at {offset} of {}", pattern.len()),
        }
        ensure!(stream.offsets().stdout == offset, "it is at {offset}");
        if random.one_in(32) {
            let offsets = stream.offsets();
            drop(stream);
            stream = vm.processes().attach(tag, ReadFrom::Offsets(offsets))?;
        }
        if random.one_in(8) {
            tokio::time::sleep(random.time_below(Duration::from_millis(50))).await;
        }
    }
    Ok(())
}
