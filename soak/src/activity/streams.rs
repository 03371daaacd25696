//! Commands in the foreground.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use vmcell::{Cause, Command, ExecEvent, Vm};

use crate::{pattern::Pattern, random::Random};

/// Reads a long output at a speed of its own, or drops it in the middle.
pub(super) async fn output(vm: &Vm, random: &mut Random) -> Result<()> {
    let pattern = Pattern::new(random.size_below(200_000) as u64 + 1);
    let dropped_at = match random.one_in(4) {
        true => random.below(pattern.len()),
        false => u64::MAX,
    };
    let command = Command::from_argv(["seq", "1", &pattern.count.to_string()]);
    let mut stream = vm.exec_stream(command)?;
    let mut received = 0;
    while let Some(event) = stream.next().await? {
        match event {
            ExecEvent::Started { .. } => {}
            ExecEvent::Stdout(bytes) => {
                pattern.check(received, &bytes)?;
                received += bytes.len() as u64;
                if received > dropped_at {
                    return Ok(());
                }
                if random.one_in(16) {
                    tokio::time::sleep(random.time_below(Duration::from_millis(50))).await;
                }
            }
            ExecEvent::Exited(exit) => {
                ensure!(exit.cause == Cause::Code(0), "seq ended with {exit:?}");
                ensure!(
                    exit.stdout_bytes == received,
                    "{received} bytes of {exit:?}"
                );
            }
            other => bail!("{other:?}"),
        }
    }
    ensure!(
        received == pattern.len(),
        "{received} of {} bytes",
        pattern.len()
    );
    Ok(())
}

/// Sends bytes through a command and back.
pub(super) async fn input(vm: &Vm, random: &mut Random) -> Result<()> {
    let count = random.size_below(2 << 20);
    let bytes = random.bytes(count);
    let mut cat = vm
        .exec_stream(Command::new("cat").stdin_stream())?
        .into_parts();
    let size = random.size_below(100_000) + 1;
    let write = async {
        for chunk in bytes.chunks(size) {
            cat.stdin.write_all(chunk).await?;
        }
        cat.stdin.shutdown().await?;
        anyhow::Ok(())
    };
    let read = async {
        let mut received = Vec::new();
        cat.stdout.read_to_end(&mut received).await?;
        anyhow::Ok(received)
    };
    let ((), received) = tokio::try_join!(write, read)?;
    drop(cat.stderr);
    let exit = cat.waiter.wait().await?;
    ensure!(exit.success(), "cat ended with {exit:?}");
    ensure!(
        received == bytes,
        "{} of {count} bytes came back, or others",
        received.len()
    );
    Ok(())
}

/// Ends trees of processes by a timeout.
pub(super) async fn timeouts(vm: &Vm, random: &mut Random) -> Result<()> {
    let command = Command::shell("sleep 1000 & setsid sleep 1000 & sleep 1000");
    let time = random.time_below(Duration::from_millis(500)) + Duration::from_millis(50);
    match vm.exec_command(command.timeout(time)).await {
        Err(error) if error.cause() == Some(Cause::Timeout) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(output) => bail!("it ended before its timeout: {output:?}"),
    }
}

/// Runs short commands, a few at once. Each must run once.
pub(super) async fn many_commands(vm: &Vm, random: &mut Random) -> Result<()> {
    let log = format!("/tmp/log-{}", random.name());
    let commands = random.below(20) + 1;
    for number in 0..commands {
        let line = format!("echo {number} >> {log}; echo {number}; echo error >&2; exit 7");
        let (one, other) = tokio::join!(
            vm.exec_command(Command::shell(line)),
            vm.exec(["echo", "other"])
        );
        let (one, other) = (one?, other?);
        ensure!(one.code() == Some(7), "{one:?}");
        ensure!(one.stdout_text() == format!("{number}\n"), "{one:?}");
        ensure!(one.stderr_text() == "error\n", "{one:?}");
        ensure!(other.stdout_text() == "other\n", "{other:?}");
    }
    let lines = vm.exec(["cat", &log]).await?.stdout_text();
    let expected: String = (0..commands).map(|number| format!("{number}\n")).collect();
    ensure!(lines == expected, "commands ran: {lines:?}");
    vm.exec(["rm", &log]).await?;
    Ok(())
}
