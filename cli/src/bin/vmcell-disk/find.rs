//! `vmcell-disk find`: finds entries by name, type, size or time.

use std::{ffi::OsString, ops::Bound, path::PathBuf, time::SystemTime};

use clap::{Args, ValueEnum, value_parser};
use vmcell::{
    disk::Find,
    files::{EntryKind, WalkOptions},
};
use vmcell_cli::{
    options::{size, timestamp},
    show::entry,
};

use crate::{
    image::{ImageOptions, absolute},
    listing::{self, Inodes, Sizes, Style},
};

const EXAMPLES: &str = "\
Examples:
  vmcell-disk find stopped.qcow2 /var --name '*.log' --size +10m
  vmcell-disk find stopped.qcow2 --type f --newer 2026-01-31T12:00

-name, -iname, -type, -size, -newermt, -maxdepth, -ls, -print and -print0 may be typed as for find(1).";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FindArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Directory to search.
    #[arg(value_name = "PATH", default_value = "/")]
    path: PathBuf,
    /// Only entries whose name matches PATTERN: `*`, `?` and `[a-z]`.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    name: Option<OsString>,
    /// The same, ignoring the case of ASCII letters.
    #[arg(
        long,
        value_name = "PATTERN",
        allow_hyphen_values = true,
        conflicts_with = "name"
    )]
    iname: Option<OsString>,
    /// Only entries of this type: f (file), d (directory), l (link), p (pipe),
    /// s (socket), c (character device) or b (block device). Can be repeated.
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// Only entries of more (+10m), less (-10m) or exactly (10m) this size.
    #[arg(long, value_name = "[+-]SIZE", allow_hyphen_values = true, value_parser = SizeRange::parse)]
    size: Option<SizeRange>,
    /// Only entries modified after TIME: a date in UTC (2026-01-31 or
    /// 2026-01-31T12:00:59), or an age such as 30m, 36h or 7d.
    #[arg(long, value_name = "TIME", value_parser = timestamp::parse)]
    newer: Option<SystemTime>,
    /// Only entries modified before TIME.
    #[arg(long, value_name = "TIME", value_parser = timestamp::parse)]
    older: Option<SystemTime>,
    /// Descend at most N levels below the directory.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Print entries in disk order instead of sorted by name.
    #[arg(long, short = 'U')]
    unsorted: bool,
    /// Also print permissions, owners, sizes and times.
    #[arg(long, short)]
    long: bool,
    /// Terminate each path with a NUL byte, for `xargs -0`.
    #[arg(long, short = '0', conflicts_with_all = ["long", "json"])]
    print0: bool,
    /// Print the entries as JSON, one on each line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

/// The letters of `find -type`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    F,
    D,
    L,
    P,
    S,
    C,
    B,
}

impl From<Kind> for EntryKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::F => Self::File,
            Kind::D => Self::Directory,
            Kind::L => Self::Symlink,
            Kind::P => Self::Fifo,
            Kind::S => Self::Socket,
            Kind::C => Self::CharacterDevice,
            Kind::B => Self::BlockDevice,
        }
    }
}

/// A lower and an upper bound of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SizeRange(Bound<u64>, Bound<u64>);

impl SizeRange {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(text) = text.strip_prefix('+') {
            return Ok(Self(Bound::Excluded(size::parse(text)?), Bound::Unbounded));
        }
        if let Some(text) = text.strip_prefix('-') {
            return Ok(Self(Bound::Unbounded, Bound::Excluded(size::parse(text)?)));
        }
        let exact = Bound::Included(size::parse(text)?);
        Ok(Self(exact, exact))
    }
}

pub(crate) fn find(arguments: &FindArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let path = absolute(&arguments.path);
    let style = match (arguments.json, arguments.long, arguments.print0) {
        (true, _, _) => Style::Json,
        (_, true, _) => Style::Long(Sizes::Bytes),
        (_, _, true) => Style::NulTerminated,
        _ => Style::Names,
    };
    let entries = disk.find(&path, arguments.to_find(style));
    let entries = listing::or_dangling_link(&disk, &path, entries)?;
    listing::print(&disk, entries, style, Inodes::Hidden, entry::absolute)
}

impl FindArguments {
    fn to_find(&self, style: Style) -> Find {
        let mut walk = WalkOptions::new()
            .with_top()
            .depth(self.depth.unwrap_or(u32::MAX));
        if self.unsorted {
            walk = walk.unsorted();
        }
        if !matches!(style, Style::Long(_) | Style::Json) {
            walk = walk.without_names();
        }
        let mut find = Find::new().within(walk);
        if let Some(name) = &self.name {
            find = find.name(name);
        }
        if let Some(name) = &self.iname {
            find = find.name(name).ignore_case();
        }
        for kind in &self.kinds {
            find = find.kind((*kind).into());
        }
        if let Some(SizeRange(from, to)) = self.size {
            find = find.size((from, to));
        }
        let after = self.newer.map_or(Bound::Unbounded, Bound::Excluded);
        let before = self.older.map_or(Bound::Unbounded, Bound::Excluded);
        find.modified((after, before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_means_more_or_fewer_bytes() {
        let parse = |text| SizeRange::parse(text).unwrap();
        let (ten, none) = (Bound::Excluded(10 << 10), Bound::Unbounded);
        assert_eq!(parse("+10k"), SizeRange(ten, none));
        assert_eq!(parse("-10k"), SizeRange(none, ten));
        assert_eq!(
            parse("5"),
            SizeRange(Bound::Included(5), Bound::Included(5))
        );
        for text in ["", "+", "++1", "1x"] {
            assert!(SizeRange::parse(text).is_err(), "{text}");
        }
    }
}
