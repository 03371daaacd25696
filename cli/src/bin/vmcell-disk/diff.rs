//! `vmcell-disk diff`: prints the differences between two disks.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use vmcell::{
    diff::PatchDetail,
    disk::{Comparison, DiffSide, Disk, DiskChange, DiskDiff, DiskError},
};
use vmcell_cli::{
    options::PathFilter,
    show::{SafeStdout, change},
};

use crate::{
    diff_stat,
    failure::report,
    image::{ImageOptions, absolute},
    problems::Problems,
};

const EXAMPLES: &str = "\
The patch can be applied with `git apply`, `patch -p1` or `vmcell patch`. It omits what a patch
cannot represent: directories, devices, owners and the contents of binary files. Their number is
printed on standard error, and --name-status lists them.
Exit codes: 0 same, 1 different, 2 not everything could be compared.

Examples:
  vmcell-disk diff base.ext4 stopped.qcow2 /workspace
  vmcell-disk diff base.ext4 stopped.qcow2 --name-status --exclude /tmp/
  vmcell-disk diff stopped.qcow2 ./exported /workspace --stat";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArguments {
    /// Old side: a disk, a layer of one, or a directory on this machine.
    #[arg(value_name = "A")]
    old: PathBuf,
    /// New side: likewise.
    #[arg(value_name = "B")]
    new: PathBuf,
    /// Directory on the disks to compare, or to compare a local directory with.
    #[arg(value_name = "PATH", default_value = "/")]
    path: PathBuf,
    /// Only list what changed, including directories and special files: A
    /// (added), D (deleted), M (modified) or T (type changed).
    #[arg(long, conflicts_with_all = ["stat", "json"])]
    name_status: bool,
    /// Only print the number of changed lines of each file.
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// Ignore owners and groups.
    #[arg(long)]
    ignore_owners: bool,
    #[command(flatten)]
    path_filter: PathFilter,
    /// Print the changes as JSON, one on each line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

/// The exit code for differences, as that of diff(1).
const DIFFERENT: u8 = 1;
/// The exit code if not everything could be compared, as that of diff(1).
const INCOMPLETE_COMPARISON: u8 = 2;

pub(crate) fn diff(arguments: &DiffArguments) -> anyhow::Result<u8> {
    let (old, new) = (
        arguments.open(&arguments.old)?,
        arguments.open(&arguments.new)?,
    );
    if let (None, None) = (&old, &new) {
        return Err(DiskError::Invalid(
            "A and B are both local directories: compare them with `diff -r`".to_owned(),
        )
        .into());
    }
    let disks = (old.as_ref(), new.as_ref());
    let old = arguments.side(disks.0, &arguments.old);
    let new = arguments.side(disks.1, &arguments.new);
    let diff = arguments.compare(old, new)?;

    let mut out = SafeStdout::new();
    let mut problems = Problems::new(arguments.json);
    let mut written = arguments.print(&diff, &mut out);
    for disk in disks.0.into_iter().chain(disks.1) {
        written = written.and_then(|()| problems.add_disk(disk, &mut out));
    }
    for problem in diff.problems() {
        written = written.and_then(|()| problems.add(problem, &mut out));
    }
    let more = diff.problem_count() - diff.problems().len() as u64;
    written = written.and_then(|()| problems.add_more(more, &mut out));
    let code = match out.finish(written)? {
        0 if diff.is_empty() => 0,
        0 => DIFFERENT,
        broken_pipe => return Ok(broken_pipe),
    };
    if !arguments.json && !arguments.name_status {
        report_changes_not_in_patch(&diff);
    }
    Ok(problems.finish_with(code, INCOMPLETE_COMPARISON))
}

impl DiffArguments {
    /// Opens a disk. Returns `None` for a directory.
    fn open(&self, path: &Path) -> Result<Option<Disk>, DiskError> {
        match path.is_dir() {
            true => Ok(None),
            false => self.options.open(path).map(Some),
        }
    }

    fn side<'d>(&self, disk: Option<&'d Disk>, path: &Path) -> DiffSide<'d> {
        match disk {
            Some(disk) => DiffSide::disk(disk, absolute(&self.path)),
            None => DiffSide::folder(path),
        }
    }

    fn compare(&self, old: DiffSide<'_>, new: DiffSide<'_>) -> anyhow::Result<DiskDiff> {
        let mut comparison = Comparison::new(old, new);
        for pattern in self.path_filter.include_patterns() {
            comparison = comparison.include(pattern);
        }
        for pattern in self.path_filter.exclude_patterns()? {
            comparison = comparison.exclude(pattern);
        }
        if self.ignore_owners {
            comparison = comparison.ignore_owners();
        }
        Ok(comparison.run()?)
    }

    fn print(&self, diff: &DiskDiff, out: &mut SafeStdout) -> io::Result<()> {
        let mut changes = diff.changes().iter();
        if self.json {
            changes.try_for_each(|change| out.json(&json!(change)))
        } else if self.name_status {
            changes.try_for_each(|change| {
                change::print_name(change.file.change(), &owner_change(change), out)
            })
        } else if self.stat {
            diff_stat::print(diff, out)
        } else {
            changes.try_for_each(|change| change::print_patch(&change.file, out))
        }
    }
}

fn owner_change(change: &DiskChange) -> String {
    match (change.old_owner, change.new_owner) {
        (Some(old), Some(new)) if change.owner_changed() => {
            format!(
                " (owner {}:{} -> {}:{})",
                old.uid, old.gid, new.uid, new.gid
            )
        }
        _ => String::new(),
    }
}

fn report_changes_not_in_patch(diff: &DiskDiff) {
    let count = |is_counted: fn(&DiskChange) -> bool| {
        diff.changes()
            .iter()
            .filter(|change| is_counted(change))
            .count()
    };
    let missing = count(|change| change.file.patch().is_empty());
    let named = count(|change| change.file.detail() == PatchDetail::NameOnly);
    if missing > 0 {
        report(&format!(
            "changes to directories, special files or owners that are not in the patch: {missing} \
             (--name-status lists them)"
        ));
    }
    if named > 0 {
        report(&format!(
            "binary or large files, which the patch only names, so that it leaves them out: {named}"
        ));
    }
}
