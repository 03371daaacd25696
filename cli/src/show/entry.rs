//! What people and machines are told of an entry.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vmcell::files::{Entry, EntryKind};

use super::{Table, date::Date, name, page::OFF};

/// The columns of a long listing, but for the name.
pub const HEADER: [&str; 6] = ["MODE", "LINKS", "OWNER", "GROUP", "SIZE", "MODIFIED (UTC)"];

/// The table of a long listing.
pub fn table() -> Table<6> {
    Table::with_tail(HEADER, "NAME")
}

/// The cells of a long listing, but for the name.
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

/// A path, and where it points if it is a link: what stays in its line and
/// drives no terminal, but for the colour of the path.
pub fn label(entry: &Entry, path: &Path, coloured: bool) -> String {
    let path = name::shown(path);
    let mut label = match colour(entry) {
        on if coloured && !on.is_empty() => format!("{on}{path}{OFF}"),
        _ => path,
    };
    if let Some(target) = &entry.target {
        label += " -> ";
        label += &name::shown(target);
    }
    label
}

/// What begins the colour of a name on a terminal; empty: none.
pub fn colour(entry: &Entry) -> &'static str {
    match entry.kind {
        EntryKind::Directory => "\x1b[1;34m",
        EntryKind::Symlink => "\x1b[1;36m",
        EntryKind::File if entry.mode & 0o111 != 0 => "\x1b[1;32m",
        EntryKind::File => "",
        _ => "\x1b[1;33m",
    }
}

/// All that there is to know, a line each.
pub fn lines(entry: &Entry) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("path", label(entry, &absolute(entry), false)),
        ("type", kind(entry.kind).to_owned()),
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
        lines.push(("sha256", name::hex(digest)));
    }
    lines
}

/// The owner's name, or the number of one who has none.
fn owner(entry: &Entry) -> String {
    name_or_number(entry.owner.as_deref(), entry.uid)
}

/// The same for the group.
fn group(entry: &Entry) -> String {
    name_or_number(entry.group.as_deref(), entry.gid)
}

fn name_or_number(name: Option<&str>, number: u32) -> String {
    match name {
        Some(name) => name::shown(name),
        None => number.to_string(),
    }
}

/// Its path from the root on.
pub fn absolute(entry: &Entry) -> PathBuf {
    Path::new("/").join(&entry.path)
}

/// Its path as it is listed: from this directory on. What is no directory is its
/// own only entry.
pub fn listed(entry: &Entry, directory: &Path) -> PathBuf {
    let path = absolute(entry);
    match path.strip_prefix(directory) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_owned(),
        _ => path,
    }
}

/// What it is, in a word.
pub fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Symlink => "symlink",
        EntryKind::Fifo => "fifo",
        EntryKind::Socket => "socket",
        EntryKind::CharacterDevice => "character-device",
        EntryKind::BlockDevice => "block-device",
        _ => "other",
    }
}

/// All that there is to know, for machines.
pub fn as_json(entry: &Entry) -> Value {
    let mut told = json!({
        "type": kind(entry.kind),
        "size": entry.size,
        "allocated": entry.allocated,
        "mode": format!("{:04o}", entry.mode),
        "permissions": entry.permissions(),
        "uid": entry.uid,
        "gid": entry.gid,
        "owner": entry.owner,
        "group": entry.group,
        "modified": Date::of(entry.modified).exact(),
        "links": entry.links,
        "inode": entry.inode,
        "target": null,
        "sha256": entry.sha256.map(|digest| name::hex(&digest)),
    });
    let path = absolute(entry);
    name::put(&mut told, "path", path);
    let last = entry.name().unwrap_or_default();
    name::put(&mut told, "name", last);
    if let Some(target) = &entry.target {
        name::put(&mut told, "target", target);
    }
    told
}
