//! The guest's program in a VM of vmcell, as a server or to measure.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use vmcell::{
    Command, Error, Vm,
    port::{PortError, PublishedPort},
};

use crate::baseline::guest_program;

/// Copies the program into a VM.
pub async fn add_program(vm: &Vm) -> Result<()> {
    vm.files().write("/bench", guest_program()?).await?;
    ensure!(vm.exec(["chmod", "+x", "/bench"]).await?.success());
    Ok(())
}

/// Starts one of its servers and publishes its port.
pub async fn publish(vm: &Vm, task: &str, port: u16) -> Result<PublishedPort> {
    let server = Command::new("/bench").env("vmcell_bench", task);
    vm.spawn(server).await?;
    let begun = Instant::now();
    while let Err(error) = vm.ports().dial(port).await {
        let early = matches!(error, Error::Port(PortError::NobodyListens { .. }));
        ensure!(
            early && begun.elapsed() < Duration::from_secs(20),
            "{error}"
        );
    }
    Ok(vm.ports().publish(port).await?)
}

/// Returns the time that a task measures, as a client of the server with this address if
/// the task needs one.
pub async fn measure_in_guest(vm: &Vm, task: &str, server: &str) -> Result<Duration> {
    let command = Command::new("/bench")
        .env("vmcell_bench", task)
        .env("vmcell_address", server)
        .timeout(Duration::from_secs(300));
    let output = vm.exec_command(command).await?;
    ensure!(output.success(), "{output:?}");
    Ok(Duration::from_nanos(output.stdout_text().trim().parse()?))
}
