//! `vmcell vm create`: creates a VM that is not started.

use super::{VMS, arguments::CreateArguments, open};
use crate::runtime::block_on;

pub(super) fn create(arguments: CreateArguments, json: bool) -> anyhow::Result<u8> {
    let new = arguments
        .options
        .prepare(arguments.id, arguments.ttl_seconds)?;
    block_on(async move {
        let vm = open()?.create_stopped(new).await?;
        VMS.print_new(&vm, arguments.id_only, json).await
    })
}
