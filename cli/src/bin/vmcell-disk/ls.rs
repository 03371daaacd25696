//! `vmcell-disk ls`: what is in a directory.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, value_parser};
use vmcell::files::WalkOptions;
use vmcell_cli::show::entry;

use crate::{
    image::{ImageOptions, rooted},
    listing::{self, Number, Style},
};

const EXAMPLES: &str = "\
Examples:
  vmcell-disk ls stopped.qcow2 /etc -l
  vmcell-disk ls base.ext4 --glob '**/*.conf'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LsArguments {
    /// The disk: a raw or qcow2 image.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// The directory.
    #[arg(value_name = "PATH", default_value = "/")]
    path: PathBuf,
    /// Permissions, owners, sizes and times too.
    #[arg(long, short)]
    long: bool,
    /// Everything below, not only what is in it.
    #[arg(long, short = 'R')]
    recursive: bool,
    /// So many levels below the directory.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Only paths below the directory that match: `*` and `?` match within a
    /// name, `**` any number of directories.
    #[arg(long, value_name = "PATTERN")]
    glob: Option<OsString>,
    /// The numbers of inodes too.
    #[arg(long, short)]
    inode: bool,
    /// In the order of the disk, not of the names.
    #[arg(long, short = 'U')]
    unsorted: bool,
    /// Print the entries as JSON, one on each line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn ls(arguments: &LsArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let path = rooted(&arguments.path);
    let style = match (arguments.json, arguments.long) {
        (true, _) => Style::Json,
        (false, true) => Style::Long,
        (false, false) => Style::Names,
    };
    let number = match arguments.inode {
        true => Number::Inode,
        false => Number::None,
    };
    let entries = disk.walk(&path, arguments.walk(style))?;
    listing::print(entries, style, number, |entry| entry::listed(entry, &path))
}

impl LsArguments {
    fn walk(&self, style: Style) -> WalkOptions {
        let deep = self.recursive || self.glob.is_some();
        let depth = self.depth.unwrap_or(if deep { u32::MAX } else { 1 });
        let mut walk = WalkOptions::new().depth(depth);
        if let Some(pattern) = &self.glob {
            walk = walk.glob(pattern);
        }
        if self.unsorted {
            walk = walk.unsorted();
        }
        if style == Style::Names {
            walk = walk.without_names();
        }
        walk
    }
}
