//! Output of programs that have secrets, compared with output of programs that have none.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;
use vmcell::{
    Command, Vm,
    backend::{Backend as _, HostProcess},
    secret::Secret,
};
use vmcell_benches::{
    summary::{Bound, median_round, row},
    transfers::printing_time,
};

const ROUNDS: usize = 31;

const SECRETS: usize = 10;

/// The bytes that are printed in one measurement.
const BYTES: usize = 256 << 20;

/// The size of a file that is printed again and again.
const FILE: usize = 4 << 20;

/// What is printed, and how a file of it is made.
const KINDS: [(&str, &str); 3] = [
    ("zeros", "cat /dev/zero"),
    ("random bytes", "cat /dev/urandom"),
    ("text in base64", "cat /dev/urandom | base64"),
];

pub(crate) fn measure(runtime: &Runtime) -> Result<()> {
    let health = HostProcess::new().health();
    if !health.is_available {
        println!("| masking was skipped: {} | | | | | |", health.reason);
        return Ok(());
    }
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let start = || {
        let builder = Vm::builder().image(&image).backend("process");
        runtime.block_on(builder.allow_host_compat().start())
    };
    let (with, without) = (start()?, start()?);
    let mut command = Command::new("true");
    for number in 0..SECRETS {
        // As long as tokens are, and none like another.
        let value = format!("{number}x7Qz-{:040x}", number * 0x1234_5678_9abc);
        let secret = Secret::new(format!("token-{number}"), value)?;
        command = command.secret_env(format!("TOKEN_{number}"), &secret);
    }
    ensure!(runtime.block_on(with.exec_command(command))?.success());
    for (kind, source) in KINDS {
        let make = format!("{source} | head -c {FILE} > /tmp/printed");
        for vm in [&with, &without] {
            let made = runtime.block_on(vm.exec_command(Command::shell(&make)))?;
            ensure!(made.success(), "{made:?}");
        }
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let masked = runtime.block_on(output_time(&with))?;
            let plain = runtime.block_on(output_time(&without))?;
            rounds.push((masked, plain));
        }
        let (masked, plain) = median_round(rounds);
        let rate = |time: Duration| BYTES as f64 / time.as_secs_f64() / 1e6;
        row(
            &format!("256 MiB of {kind}, searched for {SECRETS} secrets, on `process`"),
            &format!("{:.0} MB/s", rate(masked)),
            &format!("{:.0} MB/s (without secrets)", rate(plain)),
            rate(masked) / rate(plain),
            Bound::AtLeast(0.9),
        );
    }
    runtime.block_on(with.kill())?;
    runtime.block_on(without.kill())?;
    Ok(())
}

/// Returns the time in which the file is printed so often that it is [`BYTES`].
async fn output_time(vm: &Vm) -> Result<Duration> {
    let files = vec!["/tmp/printed"; BYTES / FILE];
    printing_time(vm, Command::new("cat").args(files), BYTES).await
}
