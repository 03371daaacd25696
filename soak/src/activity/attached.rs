//! A second program that uses the VM.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use vmcell::Vm;

use super::{VmEnded, files, streams};
use crate::random::Random;

/// Longer than an owner takes to notice the end of a VMM on a busy machine.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Does with the VM what other programs of the user can do.
pub(super) async fn use_as_client(vm: &Vm, random: &mut Random) -> Result<()> {
    let listed = Vm::list().await?;
    if !listed.iter().any(|info| info.id == vm.id()) {
        // If it was killed, its owner is about to learn that.
        let ended = tokio::time::timeout(END_TIMEOUT, vm.ended()).await;
        ensure!(ended.is_err(), VmEnded);
        bail!("{} is not listed", vm.id());
    }
    let client = Vm::attach(vm.id()).await?;
    streams::output(&client, random).await?;
    files::whole_files(&client, random).await?;
    streams::input(&client, random).await?;
    Ok(())
}
