//! `vmcell-disk child`: creates a disk that stores only its differences from
//! another one.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use vmcell::disk::{DiskError, image::create_child};
use vmcell_cli::show::SafeStdout;

use crate::{image::ImageOptions, interrupt::Interrupt};

const EXAMPLES: &str = "\
BASE must not be modified any more: `vmcell-disk seal` makes it read-only.

Example:
  vmcell-disk child base.ext4 work.qcow2";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChildArguments {
    /// Disk that the new one is based on.
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// New qcow2 image, which must not exist.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Print the new disk as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn child(arguments: &ChildArguments) -> anyhow::Result<u8> {
    // It takes milliseconds, so an interrupt does not cancel it.
    let interrupt = Interrupt::watch()?;
    let options = arguments.options.image_options(&arguments.base);
    let made = create_child(&arguments.base, &arguments.new, options);
    let layer = made.map_err(DiskError::from)?;
    if arguments.json {
        let mut out = SafeStdout::new();
        let written = out.json(&json!(layer));
        return out.finish(written);
    }
    Ok(interrupt.code().unwrap_or(0))
}
