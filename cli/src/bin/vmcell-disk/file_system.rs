//! File system information, as text and as JSON.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use vmcell::disk::ext4::{Info, JournalState, RecordedError, Timestamp};
use vmcell_cli::show::{date::Date, name};

use crate::info::{size_text, yes_no};

/// Returns all information as keys and values.
pub(crate) fn lines(info: &Info) -> Vec<(&'static str, String)> {
    let block = u64::from(info.block_size);
    let size_of = |blocks: u64| size_text(blocks.saturating_mul(block));
    let mounted = match (info.mounted, info.mounted_at.as_slice()) {
        (None, _) => "never".to_owned(),
        (Some(time), []) => short(time),
        (Some(time), place) => format!("{} at {}", short(time), name::printable_bytes(place)),
    };
    let mut lines = vec![
        ("label", name::printable_bytes(&info.label)),
        ("uuid", uuid(&info.uuid)),
        ("features", info.features.join(" ")),
        ("block size", info.block_size.to_string()),
        ("capacity", size_of(info.blocks)),
        ("free", size_of(info.free_blocks)),
        ("reserved", size_of(info.reserved_blocks)),
        (
            "inodes",
            format!("{}, {} free", info.inodes, info.free_inodes),
        ),
        ("created", info.created.map_or("unknown".to_owned(), short)),
        ("last mount", mounted),
        ("last write", info.written.map_or("never".to_owned(), short)),
        ("last check", info.checked.map_or("never".to_owned(), short)),
        ("mounts", format!("{} since then", info.mounts)),
        ("clean", yes_no(info.clean).to_owned()),
        ("journal", journal_text(&info.journal)),
    ];
    if let Some(in_use) = info.in_use {
        lines.push(("mounted", yes_no(in_use).to_owned()));
    }
    if info.has_errors || info.error_count > 0 {
        lines.push(("errors", info.error_count.to_string()));
    }
    for (key, error) in [
        ("first error", &info.first_error),
        ("last error", &info.last_error),
    ] {
        if let Some(error) = error {
            lines.push((key, error_text(error)));
        }
    }
    lines
}

/// Returns all information as JSON.
pub(crate) fn as_json(info: &Info) -> Value {
    let date =
        |time: Option<Timestamp>| json!(time.map(|time| Date::of(system_time(time)).rfc3339()));
    let recorded = |error: &Option<RecordedError>| {
        json!(error.as_ref().map(|error| {
            let mut object = json!({
                "time": date(error.time),
                "inode": error.inode,
                "block": error.block,
                "line": error.line,
            });
            name::insert_bytes(&mut object, "function", &error.function);
            object
        }))
    };
    let mut object = json!({
        "uuid": uuid(&info.uuid),
        "features": info.features,
        "block_size": info.block_size,
        "blocks": info.blocks,
        "free_blocks": info.free_blocks,
        "reserved_blocks": info.reserved_blocks,
        "inodes": info.inodes,
        "free_inodes": info.free_inodes,
        "inode_size": info.inode_size,
        "created": date(info.created),
        "mounted": date(info.mounted),
        "written": date(info.written),
        "checked": date(info.checked),
        "mounts": info.mounts,
        "clean": info.clean,
        "in_use": info.in_use,
        "journal": journal_text(&info.journal),
        "has_errors": info.has_errors,
        "error_count": info.error_count,
        "first_error": recorded(&info.first_error),
        "last_error": recorded(&info.last_error),
    });
    name::insert_bytes(&mut object, "label", &info.label);
    name::insert_bytes(&mut object, "mounted_at", &info.mounted_at);
    object
}

fn error_text(error: &RecordedError) -> String {
    let time = error.time.map_or("unknown".to_owned(), short);
    let function = name::printable_bytes(&error.function);
    format!(
        "{time} in {function}:{}, inode {}, block {}",
        error.line, error.inode, error.block
    )
}

fn journal_text(state: &JournalState) -> String {
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
    format!("{} UTC", Date::of(system_time(time)).short())
}

/// Converts a time of a file system. One that does not fit becomes 1970.
fn system_time(time: Timestamp) -> SystemTime {
    let distance = Duration::from_secs(time.seconds.unsigned_abs());
    let whole = match time.seconds {
        0.. => SystemTime::UNIX_EPOCH.checked_add(distance),
        _ => SystemTime::UNIX_EPOCH.checked_sub(distance),
    };
    let exact =
        whole.and_then(|whole| whole.checked_add(Duration::from_nanos(time.nanoseconds.into())));
    exact.unwrap_or(SystemTime::UNIX_EPOCH)
}
