//! `vmcell-disk du`: prints the disk usage of directories.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::{ArgAction, Args};
use serde_json::json;
use vmcell::disk::{DirectoryUsage, DirectoryUsages};
use vmcell_cli::{
    options::size,
    show::{SafeStdout, name},
};

use crate::{
    image::{ImageOptions, absolute},
    problems::Problems,
};

const EXAMPLES: &str = "\
A file with several hard links counts once. Directories are printed before their parent.

Examples:
  vmcell-disk du stopped.qcow2 /var -h --depth 1
  vmcell-disk du base.ext4 -s";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct DuArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Directory.
    #[arg(value_name = "PATH", default_value = "/")]
    path: PathBuf,
    /// Only print directories at most N levels below PATH.
    #[arg(long, short, value_name = "N", visible_alias = "max-depth")]
    depth: Option<usize>,
    /// Only print the total of PATH.
    #[arg(long, short, conflicts_with = "depth")]
    summarize: bool,
    /// Print file sizes in bytes. Default: allocated space in KiB.
    #[arg(long, short)]
    bytes: bool,
    /// Print sizes with a suffix, such as 1.5M.
    #[arg(long, short)]
    human_readable: bool,
    /// Print JSON, one directory on each line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn du(arguments: &DuArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let depth = match arguments.summarize {
        true => 0,
        false => arguments.depth.unwrap_or(usize::MAX),
    };
    let usages = disk.usage_by_directory(absolute(&arguments.path), depth)?;
    let mut out = SafeStdout::new();
    let mut problems = Problems::new(arguments.json);
    let written = problems
        .add_disk(&disk, &mut out)
        .and_then(|()| print(usages, arguments, &mut out, &mut problems));
    let code = out.finish(written)?;
    Ok(problems.finish(code))
}

fn print(
    usages: DirectoryUsages<'_>,
    arguments: &DuArguments,
    out: &mut SafeStdout,
    problems: &mut Problems,
) -> io::Result<()> {
    // The problems of the last directory, which contains all others.
    let mut unreadable = 0;
    for usage in usages {
        match usage {
            Ok(directory) => {
                unreadable = directory.usage.problems;
                arguments.print(&directory, out)?;
            }
            Err(problem) => problems.add(&problem, out)?,
        }
    }
    problems.add_more(unreadable, out)
}

impl DuArguments {
    fn print(&self, directory: &DirectoryUsage, out: &mut SafeStdout) -> io::Result<()> {
        let DirectoryUsage { path, usage, .. } = directory;
        let path = Path::new("/").join(path);
        if self.json {
            let mut object = json!(directory);
            name::insert(&mut object, "path", path);
            return out.json(&object);
        }
        let bytes = match self.bytes {
            true => usage.bytes,
            false => usage.allocated,
        };
        let size = match (self.human_readable, self.bytes) {
            (true, _) => size::human_readable(bytes),
            (false, true) => bytes.to_string(),
            (false, false) => bytes.div_ceil(1024).to_string(),
        };
        out.path_line(&format!("{size}\t"), &path, "", "")
    }
}
