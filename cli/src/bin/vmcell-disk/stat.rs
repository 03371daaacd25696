//! `vmcell-disk stat`: prints the metadata of files, directories or links.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use clap::Args;
use serde_json::{Value, json};
use vmcell::{
    disk::{Disk, DiskError, DiskProblem, EntryDetails, ext4::Attribute},
    files::EntryKind,
};
use vmcell_cli::show::{SafeStdout, entry, name};
use vmcell_tree::{Date, json::hex};

use crate::{
    image::{ImageOptions, absolute},
    problems::Problems,
};

const EXAMPLES: &str = "\
Examples:
  vmcell-disk stat stopped.qcow2 /etc/shadow
  vmcell-disk stat base.ext4 /bin/busybox --sha256 --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Files, directories or other entries. Symbolic links are not followed.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Also print the SHA-256 of files.
    #[arg(long)]
    sha256: bool,
    /// Print JSON, one entry on each line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn stat(arguments: &StatArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let mut out = SafeStdout::new();
    let mut problems = Problems::new(arguments.json);
    let mut is_first = true;
    let mut written = problems.add_disk(&disk, &mut out);
    let mut print_path = |path: &PathBuf| {
        let path = absolute(path);
        let result = read(&disk, &path, arguments.sha256);
        let (details, attributes) = match result {
            Ok(found) => found,
            Err(error) => return problems.add_at(&path, &error, &mut out),
        };
        if arguments.json {
            out.json(&as_json(&details, &attributes))?;
        } else {
            if !std::mem::take(&mut is_first) {
                writeln!(out)?;
            }
            print(&details, &attributes, &mut out)?;
        }
        let bad = attributes.iter().filter_map(|found| found.as_ref().err());
        bad.into_iter()
            .try_for_each(|problem| problems.add(problem, &mut out))
    };
    written = written.and_then(|()| arguments.paths.iter().try_for_each(&mut print_path));
    let code = out.finish(written)?;
    Ok(problems.finish(code))
}

type Attributes = Vec<Result<Attribute, DiskProblem>>;

fn read(disk: &Disk, path: &Path, digest: bool) -> Result<(EntryDetails, Attributes), DiskError> {
    let mut details = disk.details(path)?;
    if digest && details.entry.kind == EntryKind::File {
        details.entry.sha256 = Some(disk.sha256(path)?);
    }
    Ok((details, disk.xattrs(path)?))
}

fn print(details: &EntryDetails, attributes: &Attributes, out: &mut SafeStdout) -> io::Result<()> {
    let date = |time: SystemTime| format!("{} UTC", Date::of(time).short());
    let mut lines = entry::lines(&details.entry);
    lines.push(("accessed", date(details.accessed)));
    lines.push(("changed", date(details.changed)));
    if let Some(created) = details.created {
        lines.push(("created", date(created)));
    }
    if let Some((major, minor)) = details.device {
        lines.push(("device", format!("{major}, {minor}")));
    }
    lines.push(("flags", format!("{:#x}", details.flags)));
    if details.is_encrypted {
        lines.push(("encrypted", "yes".to_owned()));
    }
    for attribute in attributes.iter().flatten() {
        let name = name::printable_bytes(&attribute.name);
        lines.push(("xattr", format!("{name} = {}", value(&attribute.value))));
    }
    let mut lines = lines.iter();
    lines.try_for_each(|(key, value)| writeln!(out, "{key:10} {value}"))
}

/// Formats the value of an attribute: as text if possible, else in hexadecimal.
fn value(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => format!("\"{}\"", name::printable(text)),
        _ => format!("0x{}", hex(bytes)),
    }
}

fn as_json(details: &EntryDetails, attributes: &Attributes) -> Value {
    let mut object = json!(details);
    name::insert(&mut object, "path", entry::absolute(&details.entry));
    object["xattrs"] = attributes
        .iter()
        .flatten()
        .map(|attribute| json!(attribute))
        .collect();
    object
}
