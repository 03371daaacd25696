//! A second program that uses the VM.

use anyhow::{Result, bail, ensure};
use vmcell::{Vm, VmState};

use super::{VmEnded, files, streams};
use crate::random::Random;

/// Does with the VM what other programs of the user can do.
pub(super) async fn use_as_client(vm: &Vm, random: &mut Random) -> Result<()> {
    let listed = Vm::list().await?;
    let is_listed = listed.iter().any(|info| info.id == vm.id());
    if !is_listed {
        let has_ended = !matches!(vm.state(), VmState::Running | VmState::Paused);
        ensure!(!has_ended, VmEnded);
        bail!("{} is not listed", vm.id());
    }
    let client = Vm::attach(vm.id()).await?;
    streams::output(&client, random).await?;
    files::whole_files(&client, random).await?;
    streams::input(&client, random).await?;
    Ok(())
}
