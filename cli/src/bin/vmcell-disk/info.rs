//! `vmcell-disk info`: prints the layers, partitions and file system of a disk.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use vmcell::disk::{
    DiskError,
    ext4::Info,
    image::{
        Image, Layer,
        partition::{Partition, partitions},
    },
};
use vmcell_cli::{
    exit::INCOMPLETE,
    options::size::rough,
    show::{Page, Table, name},
};

use crate::{failure, file_system, image::ImageOptions, layer};

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
struct About {
    size: u64,
    layers: Vec<Layer>,
    partitions: Vec<Partition>,
    /// The file system, or why it cannot be read.
    file_system: Result<Info, DiskError>,
}

pub(crate) fn info(arguments: &InfoArguments) -> anyhow::Result<u8> {
    let options = arguments.options.for_image(&arguments.image);
    let image = Image::open(&arguments.image, &options).map_err(DiskError::from)?;
    let about = About {
        size: image.size(),
        layers: image.layers().context("layers")?,
        partitions: partitions(&image).context("partitions")?,
        file_system: arguments
            .options
            .open(&arguments.image)
            .map(|disk| disk.info()),
    };
    let mut page = Page::new();
    let written = match arguments.json {
        true => page.json(&about.as_json()),
        false => about.print(&mut page),
    };
    let code = page.finish(written)?;
    match &about.file_system {
        Ok(_) => Ok(code),
        Err(_) if arguments.json => Ok(INCOMPLETE),
        Err(error) => {
            failure::say(&failure::words(error));
            Ok(INCOMPLETE)
        }
    }
}

impl About {
    fn print(&self, page: &mut Page) -> io::Result<()> {
        line(page, "size", &bytes(self.size))?;
        if let Ok(info) = &self.file_system {
            for (key, value) in file_system::lines(info) {
                line(page, key, &value)?;
            }
        }
        writeln!(page)?;
        let mut table = Table::with_tail(["LAYER", "SIZE", "ALLOCATED", "SEALED"], "PATH");
        for layer in &self.layers {
            let cells = [
                layer.format.to_string(),
                rough(layer.size),
                rough(layer.allocated),
                yes(layer.sealed).to_owned(),
            ];
            table.add_with_tail(cells, name::shown(&layer.path));
        }
        table.print(page)?;
        if self.partitions.is_empty() {
            return Ok(());
        }
        writeln!(page)?;
        let mut table = Table::new(["PARTITION", "START", "SIZE", "EXT", "TYPE"]);
        for partition in &self.partitions {
            table.add([
                partition.index.to_string(),
                partition.start.to_string(),
                rough(partition.length),
                yes(partition.has_ext).to_owned(),
                partition.kind.to_string(),
            ]);
        }
        table.print(page)
    }

    fn as_json(&self) -> Value {
        let partitions = self.partitions.iter().map(|partition| {
            json!({
                "index": partition.index,
                "start": partition.start,
                "length": partition.length,
                "type": partition.kind.to_string(),
                "ext": partition.has_ext,
            })
        });
        let layers = self.layers.iter().map(layer::as_json);
        let mut told = json!({
            "size": self.size,
            "layers": layers.collect::<Vec<_>>(),
            "partitions": partitions.collect::<Vec<_>>(),
            "file_system": null,
        });
        match &self.file_system {
            Ok(info) => told["file_system"] = file_system::as_json(info),
            Err(error) => told["problem"] = failure::as_json(error),
        }
        told
    }
}

fn line(page: &mut Page, key: &str, value: &str) -> io::Result<()> {
    writeln!(page, "{key:14} {value}")
}

pub(crate) fn bytes(count: u64) -> String {
    format!("{count} ({})", rough(count))
}

pub(crate) fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}
