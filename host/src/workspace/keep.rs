//! What a keeper does.

use std::os::fd::OwnedFd;

use super::{
    create,
    folder::Folder,
    keeper_messages::{KeeperRequest, KeeperTask},
    lock::FileLock,
    locked::Locked,
    running::{self, Running},
};
use crate::error::Error;

/// Starts a workspace. When this returns, others can change it.
pub(super) async fn start(request: KeeperRequest, locks: [OwnedFd; 2]) -> Result<Running, Error> {
    let [changes, owner] = locks.map(FileLock::from_descriptor);
    let folder = Folder::new(request.folder);
    match request.task {
        KeeperTask::Create {
            record,
            seed,
            is_warm,
        } => {
            let locked = Locked::inherited(folder, *record, changes, owner);
            create::create(locked, seed, is_warm).await
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
