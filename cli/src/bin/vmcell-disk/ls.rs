//! `vmcell-disk ls`: lists a directory.

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgAction, Args, value_parser};
use vmcell::files::WalkOptions;
use vmcell_cli::show::entry;

use crate::{
    image::{ImageOptions, absolute},
    listing::{self, Inodes, Sizes, Style},
};

const EXAMPLES: &str = "\
Examples:
  vmcell-disk ls -lh stopped.qcow2 /etc
  vmcell-disk ls base.ext4 --glob '**/*.conf'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct LsArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Directory.
    #[arg(value_name = "PATH", default_value = "/")]
    path: PathBuf,
    /// Also print permissions, owners, sizes and times.
    #[arg(long, short)]
    long: bool,
    /// List subdirectories recursively.
    #[arg(long, short = 'R')]
    recursive: bool,
    /// Descend at most N levels below the directory.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Only list paths below the directory that match PATTERN: `*` and `?`
    /// match within a name, `**` matches any number of directories.
    #[arg(long, value_name = "PATTERN")]
    glob: Option<OsString>,
    /// List the directory itself, not its contents.
    #[arg(long, short, conflicts_with_all = ["recursive", "depth", "glob"])]
    directory: bool,
    /// Print sizes with a suffix, such as 1.5M.
    #[arg(long, short)]
    human_readable: bool,
    /// Does nothing: names that start with a dot are always listed.
    #[arg(long, short, visible_short_alias = 'A')]
    all: bool,
    /// Does nothing: each name is always on its own line.
    #[arg(short = '1')]
    one_per_line: bool,
    /// Also print inode numbers.
    #[arg(long, short)]
    inode: bool,
    /// Print entries in disk order instead of sorted by name.
    #[arg(long, short = 'U')]
    unsorted: bool,
    /// Print the entries as JSON, one on each line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn ls(arguments: &LsArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let path = absolute(&arguments.path);
    let style = match (arguments.json, arguments.long) {
        (true, _) => Style::Json,
        (false, true) if arguments.human_readable => Style::Long(Sizes::HumanReadable),
        (false, true) => Style::Long(Sizes::Bytes),
        (false, false) => Style::Names,
    };
    let inodes = match arguments.inode {
        true => Inodes::Shown,
        false => Inodes::Hidden,
    };
    let entries = disk.walk(&path, arguments.walk(style));
    let entries = listing::or_dangling_link(&disk, &path, entries)?;
    listing::print(&disk, entries, style, inodes, |entry| {
        entry::listed(entry, &path)
    })
}

impl LsArguments {
    fn walk(&self, style: Style) -> WalkOptions {
        let deep = self.recursive || self.glob.is_some();
        let depth = self.depth.unwrap_or(if deep { u32::MAX } else { 1 });
        let mut walk = match self.directory {
            true => WalkOptions::new().with_top().depth(0),
            false => WalkOptions::new().depth(depth),
        };
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
