//! `vmcell-disk flatten`: merges a disk and its layers into one sparse raw
//! file.

use std::{ops::ControlFlow, path::PathBuf};

use clap::Args;
use serde_json::json;
use vmcell::disk::{
    DiskError,
    image::{self, Image, ImageError},
};
use vmcell_cli::show::{Progress, SafeStdout};

use crate::{
    image::{ImageOptions, warn_if_corrupt},
    interrupt::Interrupt,
};

const EXAMPLES: &str = "\
Zeroes become holes. The file gets its name when it is complete; an interrupted run leaves nothing.

Example:
  vmcell-disk flatten stopped.qcow2 whole.ext4";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FlattenArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// New file, which must not exist.
    #[arg(value_name = "DEST")]
    destination: PathBuf,
    /// Print the size of the new file as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn flatten(arguments: &FlattenArguments) -> anyhow::Result<u8> {
    let interrupt = Interrupt::watch()?;
    let options = arguments.options.image_options(&arguments.image);
    let image = Image::open(&arguments.image, options).map_err(DiskError::from)?;
    warn_if_corrupt(&image.layers()?);
    let limit = arguments.options.limits().bytes;
    let bar = Progress::new(Some(image.size()));
    let flattened = image::flatten(&image, &arguments.destination, limit, &mut |progress| {
        bar.set_position(progress.done);
        match interrupt.code() {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    });
    drop(bar);
    let flattened = match (flattened, interrupt.code()) {
        (Err(ImageError::Cancelled), Some(code)) => return Ok(code),
        (flattened, _) => flattened.map_err(DiskError::from)?,
    };
    if !arguments.json {
        return Ok(0);
    }
    let mut out = SafeStdout::new();
    let written = out.json(&json!(flattened));
    out.finish(written)
}
