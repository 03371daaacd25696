//! `vmcell-disk child`: a disk that has only what differs from another one.

use std::path::PathBuf;

use clap::Args;
use vmcell::disk::{DiskError, image::create_child};
use vmcell_cli::show::Page;

use crate::{image::ImageOptions, interrupt::Interrupt, layer};

const EXAMPLES: &str = "\
BASE must not be written any more: `vmcell-disk seal` sees to it.

Example:
  vmcell-disk child base.ext4 work.qcow2";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChildArguments {
    /// The disk that the new one begins as.
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// The new one: a qcow2 image, where nothing is yet.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Print what was made as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn child(arguments: &ChildArguments) -> anyhow::Result<u8> {
    // It takes milliseconds: who is interrupted finishes it.
    let interrupt = Interrupt::watch()?;
    let options = arguments.options.for_image(&arguments.base);
    let made = create_child(&arguments.base, &arguments.new, &options);
    let layer = made.map_err(DiskError::from)?;
    if arguments.json {
        let mut page = Page::new();
        let written = page.json(&layer::as_json(&layer));
        return page.finish(written);
    }
    Ok(interrupt.code().unwrap_or(0))
}
