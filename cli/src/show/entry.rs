//! Directory entries, as text and as JSON.

use std::path::{Path, PathBuf};

use serde_json::Value;
use vmcell::files::{Entry, EntryKind};
use vmcell_tree::{Date, json::hex};

use super::{Table, json, name, safe_stdout::RESET_STYLE};

/// The columns of a long listing, without the name.
pub const HEADER: [&str; 6] = ["MODE", "LINKS", "OWNER", "GROUP", "SIZE", "MODIFIED (UTC)"];

/// Returns the empty table of a long listing.
pub fn table() -> Table<6> {
    Table::with_raw_column(HEADER, "NAME")
}

/// Returns the cells of a long listing, without the name.
pub fn row(entry: &Entry) -> [String; 6] {
    [
        entry.permissions(),
        entry.links.to_string(),
        owner(entry),
        group(entry),
        entry.size.to_string(),
        Date::of(entry.modified).short(),
    ]
}

/// Returns a path, and its target if it is a link, safe for a terminal: one
/// line without control characters, except for the path's colour.
pub fn label(entry: &Entry, path: &Path, coloured: bool) -> String {
    let path = name::printable(path);
    let mut label = match colour(entry) {
        on if coloured && !on.is_empty() => format!("{on}{path}{RESET_STYLE}"),
        _ => path,
    };
    if let Some(target) = &entry.target {
        label += " -> ";
        label += &name::printable(target);
    }
    label
}

/// Returns the escape sequence for the colour of a name, or "".
pub fn colour(entry: &Entry) -> &'static str {
    match entry.kind {
        EntryKind::Directory => "\x1b[1;34m",
        EntryKind::Symlink => "\x1b[1;36m",
        EntryKind::File if entry.mode & 0o111 != 0 => "\x1b[1;32m",
        EntryKind::File => "",
        _ => "\x1b[1;33m",
    }
}

/// Returns all metadata as keys and values.
pub fn lines(entry: &Entry) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("path", label(entry, &absolute(entry), false)),
        ("type", entry.kind.name().to_owned()),
        ("size", entry.size.to_string()),
        ("allocated", entry.allocated.to_string()),
        (
            "mode",
            format!("{:04o} {}", entry.mode, entry.permissions()),
        ),
        ("owner", format!("{} ({})", owner(entry), entry.uid)),
        ("group", format!("{} ({})", group(entry), entry.gid)),
        (
            "modified",
            format!("{} UTC", Date::of(entry.modified).short()),
        ),
        ("links", entry.links.to_string()),
        ("inode", entry.inode.to_string()),
    ];
    if let Some(digest) = &entry.sha256 {
        lines.push(("sha256", hex(digest)));
    }
    lines
}

/// Returns the owner's name, or the user ID if it has none.
fn owner(entry: &Entry) -> String {
    name_or_number(entry.owner.as_deref(), entry.uid)
}

/// Returns the group's name, or the group ID if it has none.
fn group(entry: &Entry) -> String {
    name_or_number(entry.group.as_deref(), entry.gid)
}

fn name_or_number(name: Option<&str>, number: u32) -> String {
    match name {
        Some(name) => name::printable(name),
        None => number.to_string(),
    }
}

/// Returns the entry's absolute path.
pub fn absolute(entry: &Entry) -> PathBuf {
    Path::new("/").join(&entry.path)
}

/// Returns the entry's path relative to the listed directory. If the listed
/// path is not a directory, its only entry is itself, with its absolute path.
pub fn listed(entry: &Entry, directory: &Path) -> PathBuf {
    let path = absolute(entry);
    match path.strip_prefix(directory) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_owned(),
        _ => path,
    }
}

/// Returns all metadata as JSON.
pub fn as_json(entry: &Entry) -> Value {
    let mut object = json::value(entry);
    name::insert(&mut object, "path", absolute(entry));
    object
}
