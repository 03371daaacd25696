//! What a keeper does.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::Mutex,
    time::{Duration, Instant},
};

use super::{
    first_boot,
    folder::Folder,
    keeper_messages::{KeeperReport, KeeperRequest, KeeperTask, send_report},
    lock::FileLock,
    locked::Locked,
    running::{self, Running},
    seed::SeedProgress,
};
use crate::error::Error;

/// Starts a workspace. When this returns, others can change it.
pub(super) async fn start(
    request: KeeperRequest,
    locks: [OwnedFd; 2],
    socket: &UnixStream,
) -> Result<Running, Error> {
    let [changes, owner] = locks.map(FileLock::from_descriptor);
    let folder = Folder::new(request.folder);
    match request.task {
        KeeperTask::Create {
            record,
            seed,
            is_warm,
            tells_progress,
        } => {
            let locked = Locked::inherited(folder, *record, changes, owner);
            let on_seed = match tells_progress {
                true => Some(reporter(socket)?),
                false => None,
            };
            first_boot::create(locked, seed, is_warm, on_seed).await
        }
        KeeperTask::Start => {
            let record = folder.read()?.ok_or_else(|| {
                Error::Invalid("the workspace that is to be started is gone".to_owned())
            })?;
            let locked = Locked::inherited(folder, record, changes, owner);
            running::start(locked).await
        }
    }
}

/// The time between two reports of the progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Returns what reports how much of a seed was copied.
fn reporter(socket: &UnixStream) -> Result<Box<dyn Fn(SeedProgress) + Send>, Error> {
    let socket = socket.try_clone();
    let socket = socket.map_err(Error::host("report the progress"))?;
    let last_report = Mutex::new(Instant::now());
    Ok(Box::new(move |progress| {
        let Ok(mut last_report) = last_report.lock() else {
            return;
        };
        if last_report.elapsed() >= REPORT_INTERVAL {
            *last_report = Instant::now();
            let SeedProgress { entries, bytes } = progress;
            // Fails if the other program has ended.
            let _ = send_report(&socket, &KeeperReport::Seeding { entries, bytes });
        }
    }))
}
