//! What people and machines are told of an entry.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vmcell::files::{Entry, EntryKind};

use super::{date::Date, name};

/// The columns of a long listing.
pub(super) const HEADER: [&str; 7] = [
    "MODE",
    "LINKS",
    "OWNER",
    "GROUP",
    "SIZE",
    "MODIFIED (UTC)",
    "NAME",
];

/// The cells of a long listing.
pub(super) fn row(entry: &Entry, path: &Path) -> [String; 7] {
    [
        entry.permissions(),
        entry.links.to_string(),
        owner(entry),
        group(entry),
        entry.size.to_string(),
        Date::of(entry.modified).short(),
        with_target(entry, path),
    ]
}

/// A path, and where it points if it is a link.
pub(super) fn with_target(entry: &Entry, path: &Path) -> String {
    let path = name::shown(path);
    match &entry.target {
        Some(target) => format!("{path} -> {}", name::shown(target)),
        None => path,
    }
}

/// The owner's name, or the number of one who has none.
pub(super) fn owner(entry: &Entry) -> String {
    name_or_number(entry.owner.as_deref(), entry.uid)
}

/// The same for the group.
pub(super) fn group(entry: &Entry) -> String {
    name_or_number(entry.group.as_deref(), entry.gid)
}

fn name_or_number(name: Option<&str>, number: u32) -> String {
    match name {
        Some(name) => name::shown(name),
        None => number.to_string(),
    }
}

/// Its path from the root of the VM on.
pub(super) fn absolute(entry: &Entry) -> PathBuf {
    Path::new("/").join(&entry.path)
}

pub(super) fn kind(kind: EntryKind) -> &'static str {
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

pub(super) fn as_json(entry: &Entry) -> Value {
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
