//! File system information as text.

use std::time::{Duration, SystemTime};

use vmcell::disk::ext4::{Info, RecordedError, Timestamp};
use vmcell_cli::show::name;
use vmcell_tree::Date;

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
        ("uuid", info.uuid_text()),
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
        ("journal", info.journal.to_string()),
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

fn error_text(error: &RecordedError) -> String {
    let time = error.time.map_or("unknown".to_owned(), short);
    let function = name::printable_bytes(&error.function);
    format!(
        "{time} in {function}:{}, inode {}, block {}",
        error.line, error.inode, error.block
    )
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
