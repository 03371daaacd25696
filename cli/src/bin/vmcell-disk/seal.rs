//! `vmcell-disk seal`: makes a layer read-only.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use vmcell::disk::{DiskError, image};
use vmcell_cli::show::SafeStdout;

use crate::image::ImageOptions;

const EXAMPLES: &str = "\
Example:
  vmcell-disk seal work.qcow2 && vmcell-disk child work.qcow2 next.qcow2";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SealArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Print the sealed layer as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn seal(arguments: &SealArguments) -> anyhow::Result<u8> {
    let sealed = image::seal(
        &arguments.image,
        arguments.options.image_options(&arguments.image),
    );
    let layer = sealed.map_err(DiskError::from)?;
    if !arguments.json {
        return Ok(0);
    }
    let mut out = SafeStdout::new();
    let written = out.json(&json!(layer));
    out.finish(written)
}
