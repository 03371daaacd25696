//! `vmcell-disk info`: prints the layers, partitions and file system of a disk.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use vmcell::disk::{
    Disk, DiskError,
    ext4::{Damage, Info},
    image::{
        Image, Layer,
        partition::{Partition, partitions},
    },
};
use vmcell_cli::{
    exit::INCOMPLETE,
    options::size::human_readable,
    show::{SafeStdout, Table, name},
};

use crate::{failure, file_system, image::ImageOptions};

const EXAMPLES: &str = "\
Examples:
  vmcell-disk info stopped.qcow2
  vmcell-disk info base.ext4 --json | jq .file_system.features";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Print everything as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

/// What is known about a disk.
struct DiskReport<'d> {
    size: u64,
    layers: Vec<Layer>,
    partitions: Vec<Partition>,
    /// Damage of the whole file system.
    damage: &'d [Damage],
    /// The file system, or why it cannot be read.
    file_system: Result<Info, &'d DiskError>,
}

pub(crate) fn info(arguments: &InfoArguments) -> anyhow::Result<u8> {
    let options = arguments.options.image_options(&arguments.image);
    let image = Image::open(&arguments.image, options).map_err(DiskError::from)?;
    let disk = arguments.options.open(&arguments.image);
    let report = DiskReport {
        size: image.size(),
        layers: image.layers().context("layers")?,
        partitions: partitions(&image).context("partitions")?,
        damage: disk.as_ref().map_or(&[], Disk::damage),
        file_system: disk.as_ref().map(Disk::info),
    };
    let mut out = SafeStdout::new();
    let written = match arguments.json {
        true => out.json(&report.as_json()),
        false => report.print(&mut out),
    };
    let code = out.finish(written)?;
    if !arguments.json {
        for damage in report.damage {
            failure::report(&failure::describe_disk_damage(damage));
        }
    }
    match &report.file_system {
        Ok(_) if !report.damage.is_empty() => Ok(INCOMPLETE),
        Ok(_) => Ok(code),
        Err(_) if arguments.json => Ok(INCOMPLETE),
        Err(error) => {
            failure::report(&failure::describe(error));
            Ok(INCOMPLETE)
        }
    }
}

impl DiskReport<'_> {
    fn print(&self, out: &mut SafeStdout) -> io::Result<()> {
        line(out, "size", &size_text(self.size))?;
        if let Ok(info) = &self.file_system {
            for (key, value) in file_system::lines(info) {
                line(out, key, &value)?;
            }
        }
        writeln!(out)?;
        let mut table = Table::with_raw_column(["LAYER", "SIZE", "ALLOCATED", "SEALED"], "PATH");
        for layer in &self.layers {
            let cells = [
                layer.format.to_string(),
                human_readable(layer.size),
                human_readable(layer.allocated),
                yes_no(layer.sealed).to_owned(),
            ];
            table.add_with_raw_column(cells, name::printable(&layer.path));
        }
        table.print(out)?;
        if self.partitions.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let mut table = Table::new(["PARTITION", "START", "SIZE", "EXT", "TYPE"]);
        for partition in &self.partitions {
            table.add([
                partition.index.to_string(),
                partition.start.to_string(),
                human_readable(partition.length),
                yes_no(partition.has_ext_fs).to_owned(),
                partition.kind.to_string(),
            ]);
        }
        table.print(out)
    }

    fn as_json(&self) -> Value {
        let mut object = json!({
            "size": self.size,
            "layers": self.layers,
            "partitions": self.partitions,
            "damage": self.damage.iter().map(failure::describe_disk_damage).collect::<Vec<_>>(),
            "file_system": null,
        });
        match &self.file_system {
            Ok(info) => object["file_system"] = json!(info),
            Err(error) => object["problem"] = failure::as_json(error),
        }
        object
    }
}

fn line(out: &mut SafeStdout, key: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{key:14} {value}")
}

pub(crate) fn size_text(count: u64) -> String {
    format!("{count} ({})", human_readable(count))
}

pub(crate) fn yes_no(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}
