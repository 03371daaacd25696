//! `vmcell cat`: prints a file.

use vmcell::{
    ExecEvent,
    files::{FileReader, ReadOptions},
};

use super::{CatArguments, path::guest_path};
use crate::{
    exit_code,
    output::{Outputs, Written},
    runtime::block_on,
    target,
};

pub(crate) fn cat(arguments: CatArguments) -> anyhow::Result<u8> {
    let length = arguments.max_bytes.unwrap_or(u64::MAX);
    let range = ReadOptions::new().range(arguments.offset, length);
    block_on(async move {
        let vm = target::attach(&arguments.id).await?;
        let path = guest_path(&arguments.path);
        let mut reader = vm.files().reader(path, range).await?;
        let outputs = Outputs::for_file();
        let read = copy(&mut reader, &outputs).await;
        // Print what came before a failure.
        let written = outputs.finish().await?;
        read?;
        Ok(match written {
            Written::All => 0,
            Written::ReaderGone => exit_code::BROKEN_PIPE,
        })
    })
}

async fn copy(reader: &mut FileReader, outputs: &Outputs) -> Result<(), vmcell::Error> {
    while let Some(bytes) = reader.next().await? {
        if !outputs.write(ExecEvent::Stdout(bytes)).await {
            break;
        }
    }
    Ok(())
}
