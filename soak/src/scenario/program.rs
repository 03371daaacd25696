//! A program with a VM of its own, which is killed.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Result, ensure};

use super::machine;
use crate::{
    arguments::Arguments,
    interference::Interference,
    random::Random,
    setup::{self, Setup},
};

/// How long a program may work after its VM was started.
const LONGEST_WORK: Duration = Duration::from_secs(10);

/// The program: starts a VM and uses it until it is killed.
pub(crate) async fn run(arguments: &Arguments, seed: u64) -> Result<bool> {
    let setup = Setup::new(arguments)?;
    let mut random = Random::new(seed);
    let vm = setup.vm(&random.name()).start().await?;
    println!("started");
    loop {
        machine::use_vm(&vm, setup.kind, Interference::None, &mut random).await?;
    }
}

/// Starts a program, and kills it at some moment. What it leaves is found after the round.
pub(super) async fn kill(setup: &Setup, random: &mut Random) -> Result<()> {
    let seed = random.number();
    let mut program = Command::new(std::env::current_exe()?)
        .arg(format!("--backend={}", setup.kind))
        .args(["program", "--seed", &seed.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let time = random.time_below(LONGEST_WORK);
    if random.one_in(3) {
        // While it starts its VM, perhaps.
        tokio::time::sleep(time).await;
    } else {
        let output = program.stdout.take();
        let line = tokio::task::spawn_blocking(move || {
            output.and_then(|output| BufReader::new(output).lines().next())
        });
        let line = line.await?.transpose()?;
        ensure!(
            line.as_deref() == Some("started"),
            "a program said {line:?}"
        );
        tokio::time::sleep(time).await;
    }
    let early = program.try_wait()?;
    // Fails if it has ended.
    let _ = program.kill();
    program.wait()?;
    let scratch = setup::scratch_of(program.id())?;
    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    ensure!(early.is_none(), "a program has ended by itself: {early:?}");
    // What a killed program has left of its folders is removed with the next start.
    setup.vm(&random.name()).start().await?.kill().await?;
    Ok(())
}
