//! What becomes of a workspace by itself: it is paused when nobody uses it, and deleted
//! when its time is over.

use std::time::{Duration, SystemTime};

use super::{folder::Folder, record::Record};

/// What is to be done with a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Its time is over.
    Delete,
    /// Nobody uses it.
    Pause,
}

/// How long to wait at most: the clock of the machine may be changed meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Returns what is due, or how long to wait until something may be. `None` if nothing ever
/// is.
pub(super) fn due(
    record: &Record,
    last_activity: SystemTime,
    now: SystemTime,
) -> Option<Result<Due, Duration>> {
    let until = |deadline: SystemTime| deadline.duration_since(now).unwrap_or_default();
    let expiry = record.expires.map(|expires| until(expires.time()));
    let idle_time = record.specification.idle_seconds.map(Duration::from_secs);
    // Somebody has set the clock back if it was used in the future.
    let idle = idle_time.map(|idle| {
        let deadline = last_activity.min(now).checked_add(idle);
        deadline.map_or(Duration::MAX, until)
    });
    match (expiry, idle) {
        (None, None) => None,
        (Some(Duration::ZERO), _) => Some(Ok(Due::Delete)),
        (_, Some(Duration::ZERO)) => Some(Ok(Due::Pause)),
        (expiry, idle) => {
            let wait = expiry.into_iter().chain(idle).min();
            Some(Err(wait.unwrap_or(MAX_WAIT).min(MAX_WAIT)))
        }
    }
}

/// Returns what is due for a workspace that runs here, as [`due`].
pub(super) fn due_now(folder: &Folder) -> Option<Result<Due, Duration>> {
    let record = folder.read().ok().flatten()?;
    let now = SystemTime::now();
    let last_activity = folder.last_activity(&record);
    if last_activity >= now {
        // The clock was set back. Else it would be used now whenever somebody looks.
        folder.touch();
    }
    let due = due(&record, last_activity, now)?;
    match due {
        // As long as a command runs, it is used.
        Ok(Due::Pause) if folder.history().has_running() => {
            folder.touch();
            Some(Err(Duration::from_secs(1)))
        }
        due => Some(due),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{record::tests::record, timestamp::Timestamp};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn without_limits_nothing_is_ever_due() {
        let record = record();
        let now = SystemTime::now();
        assert_eq!(due(&record, SystemTime::UNIX_EPOCH, now), None);
    }

    #[test]
    fn an_unused_workspace_is_paused_and_an_old_one_deleted() {
        let mut record = record();
        record.specification.idle_seconds = Some(10);
        let now = SystemTime::now();
        assert_eq!(due(&record, now - 11 * SECOND, now), Some(Ok(Due::Pause)));
        assert_eq!(due(&record, now - 7 * SECOND, now), Some(Err(3 * SECOND)));
        record.expires = Some(Timestamp::of(now + 60 * SECOND));
        assert_eq!(due(&record, now, now), Some(Err(10 * SECOND)));
        let later = now + 61 * SECOND;
        assert_eq!(due(&record, later, later), Some(Ok(Due::Delete)));
    }

    #[test]
    fn after_the_clock_was_set_back_the_time_counts_from_then_on() {
        let root = tempfile::tempdir().unwrap();
        let mut record = record();
        record.specification.idle_seconds = Some(10);
        let future = SystemTime::now() + 1000 * SECOND;
        record.last_activity = Timestamp::of(future);
        let (folder, _lock) = Folder::create(root.path().join(&record.id)).unwrap();
        folder.write(&record).unwrap();
        folder.touch();
        let activity = std::fs::File::options()
            .write(true)
            .open(folder.path().join("activity"));
        activity.unwrap().set_modified(future).unwrap();
        assert!(matches!(due_now(&folder), Some(Err(_))));
        // Not again and again.
        let first = folder.last_activity(&record);
        assert!(first <= SystemTime::now());
        assert_eq!(folder.last_activity(&record), first);
        due_now(&folder);
        assert_eq!(folder.last_activity(&record), first);
    }

    #[test]
    fn a_clock_that_is_changed_harms_nothing() {
        let mut record = record();
        record.specification.idle_seconds = Some(10);
        let now = SystemTime::now();
        let year = 365 * 24 * 3600 * SECOND;
        // Set back: it counts from now on.
        assert_eq!(due(&record, now + year, now), Some(Err(10 * SECOND)));
        // Set forward: it is paused, and nothing is lost.
        assert_eq!(due(&record, now, now + 10 * year), Some(Ok(Due::Pause)));
        record.specification.idle_seconds = Some(u64::MAX / 4);
        assert!(due(&record, now, now).is_some());
    }
}
