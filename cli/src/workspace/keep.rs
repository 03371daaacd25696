//! `vmcell keep-workspace`: runs a workspace in the background.

use vmcell::workspace::Keeper;
use vmcell_cli::signals::Signals;

use crate::runtime::block_on;

pub(crate) fn keep() -> anyhow::Result<u8> {
    block_on(async {
        let mut signals = Signals::all()?;
        let stop = async {
            signals.next().await;
        };
        Keeper::keep(stop).await?;
        Ok(0)
    })
}
