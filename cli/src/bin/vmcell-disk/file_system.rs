//! File system information, as text and as JSON.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use vmcell::disk::ext4::{Info, JournalState, RecordedError, Timestamp};
use vmcell_cli::show::{date::Date, name};

use crate::info::{bytes, yes};

/// Returns all information as keys and values.
pub(crate) fn lines(info: &Info) -> Vec<(&'static str, String)> {
    let block = u64::from(info.block_size);
    let room = |blocks: u64| bytes(blocks.saturating_mul(block));
    let mounted = match (info.mounted, info.mounted_at.as_slice()) {
        (None, _) => "never".to_owned(),
        (Some(time), []) => short(time),
        (Some(time), place) => format!("{} at {}", short(time), name::shown_bytes(place)),
    };
    let mut lines = vec![
        ("label", name::shown_bytes(&info.label)),
        ("uuid", uuid(&info.uuid)),
        ("features", info.features.join(" ")),
        ("block size", info.block_size.to_string()),
        ("room", room(info.blocks)),
        ("free", room(info.free_blocks)),
        ("reserved", room(info.reserved_blocks)),
        (
            "inodes",
            format!("{}, {} free", info.inodes, info.free_inodes),
        ),
        ("created", info.created.map_or("unknown".to_owned(), short)),
        ("last mount", mounted),
        ("last write", info.written.map_or("never".to_owned(), short)),
        ("last check", info.checked.map_or("never".to_owned(), short)),
        ("mounts", format!("{} since then", info.mounts)),
        ("clean", yes(info.clean).to_owned()),
        ("journal", journal(&info.journal)),
    ];
    if let Some(in_use) = info.in_use {
        lines.push(("mounted", yes(in_use).to_owned()));
    }
    if info.has_errors || info.error_count > 0 {
        lines.push(("errors", info.error_count.to_string()));
    }
    for (key, error) in [
        ("first error", &info.first_error),
        ("last error", &info.last_error),
    ] {
        if let Some(error) = error {
            lines.push((key, recorded(error)));
        }
    }
    lines
}

/// Returns all information as JSON.
pub(crate) fn as_json(info: &Info) -> Value {
    let exact = |time: Option<Timestamp>| json!(time.map(|time| Date::of(moment(time)).exact()));
    let recorded = |error: &Option<RecordedError>| {
        json!(error.as_ref().map(|error| {
            let mut told = json!({
                "time": exact(error.time),
                "inode": error.inode,
                "block": error.block,
                "line": error.line,
            });
            name::put_bytes(&mut told, "function", &error.function);
            told
        }))
    };
    let mut told = json!({
        "uuid": uuid(&info.uuid),
        "features": info.features,
        "block_size": info.block_size,
        "blocks": info.blocks,
        "free_blocks": info.free_blocks,
        "reserved_blocks": info.reserved_blocks,
        "inodes": info.inodes,
        "free_inodes": info.free_inodes,
        "inode_size": info.inode_size,
        "created": exact(info.created),
        "mounted": exact(info.mounted),
        "written": exact(info.written),
        "checked": exact(info.checked),
        "mounts": info.mounts,
        "clean": info.clean,
        "in_use": info.in_use,
        "journal": journal(&info.journal),
        "has_errors": info.has_errors,
        "error_count": info.error_count,
        "first_error": recorded(&info.first_error),
        "last_error": recorded(&info.last_error),
    });
    name::put_bytes(&mut told, "label", &info.label);
    name::put_bytes(&mut told, "mounted_at", &info.mounted_at);
    told
}

fn recorded(error: &RecordedError) -> String {
    let time = error.time.map_or("unknown".to_owned(), short);
    let function = name::shown_bytes(&error.function);
    format!(
        "{time} in {function}:{}, inode {}, block {}",
        error.line, error.inode, error.block
    )
}

fn journal(state: &JournalState) -> String {
    match state {
        JournalState::None => "none".to_owned(),
        JournalState::Clean => "clean".to_owned(),
        JournalState::External => "external".to_owned(),
        JournalState::Ignored => "waits, ignored".to_owned(),
        JournalState::Replayed {
            transactions,
            blocks,
            damage,
        } => {
            let damage = damage
                .as_ref()
                .map_or(String::new(), |damage| format!("; {damage}"));
            format!("replayed in memory: {transactions} transactions, {blocks} blocks{damage}")
        }
        _ => "unknown".to_owned(),
    }
}

fn uuid(bytes: &[u8; 16]) -> String {
    let digits = name::hex(bytes);
    let part = |range| digits.get(range).unwrap_or_default();
    [
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32),
    ]
    .join("-")
}

fn short(time: Timestamp) -> String {
    format!("{} UTC", Date::of(moment(time)).short())
}

/// Converts a time of a file system. One that does not fit becomes 1970.
fn moment(time: Timestamp) -> SystemTime {
    let away = Duration::from_secs(time.seconds.unsigned_abs());
    let whole = match time.seconds {
        0.. => SystemTime::UNIX_EPOCH.checked_add(away),
        _ => SystemTime::UNIX_EPOCH.checked_sub(away),
    };
    let exact =
        whole.and_then(|whole| whole.checked_add(Duration::from_nanos(time.nanoseconds.into())));
    exact.unwrap_or(SystemTime::UNIX_EPOCH)
}
