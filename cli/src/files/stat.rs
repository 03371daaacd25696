//! `vmcell stat`: prints the metadata of a file of a VM.

use std::io::Write;

use vmcell::{
    Error,
    files::{Entry, EntryKind},
};
use vmcell_cli::show::{SafeStdout, entry};

use super::{StatArguments, path::guest_path};
use crate::{failure::print_json, runtime::block_on, target};

pub(crate) fn stat(arguments: StatArguments) -> anyhow::Result<u8> {
    let json = arguments.json;
    let entry = block_on(async { Ok(read_entry(&arguments).await?) })?;
    if json {
        print_json(&entry::as_json(&entry));
        return Ok(0);
    }
    print(&entry)
}

async fn read_entry(arguments: &StatArguments) -> Result<Entry, Error> {
    let vm = target::attach(&arguments.id).await?;
    let path = guest_path(&arguments.path);
    let files = vm.files();
    let mut entry = match arguments.no_follow {
        true => files.stat_link(&path).await?,
        false => files.stat(&path).await?,
    };
    if arguments.sha256 && entry.kind == EntryKind::File {
        entry.sha256 = Some(files.sha256(&path).await?);
    }
    Ok(entry)
}

fn print(entry: &Entry) -> anyhow::Result<u8> {
    let mut out = SafeStdout::new();
    let lines = entry::lines(entry);
    let mut lines = lines.iter();
    let written = lines.try_for_each(|(key, value)| writeln!(out, "{key:10} {value}"));
    out.finish(written)
}
