//! VMs that other programs own.

use std::{
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};

use super::{
    Vm, VmDetails, VmEnd, VmInfo, VmState, VmStatus,
    handle::{Control, Shared},
};
use crate::{
    attach::{self, ANSWER_TIMEOUT, AttachClient, ControlRequest, FoundVm, PauseNotice, VmName},
    console::Console,
    error::Error,
    link::{LinkChoice, LinkKind},
    network::{NetworkLog, NetworkStatus},
    quotas::QuotaUsage,
    session::{Link, LinkError, Session},
    snapshot::{SnapshotOptions, SnapshotReport},
};

pub(super) async fn list() -> Result<Vec<VmInfo>, Error> {
    let found = attach::list().await;
    let found = found.map_err(Error::host("look for VMs"))?;
    let infos = found.into_iter().map(|(name, found)| {
        let (owner_pid, status) = match found {
            FoundVm::Answering(AttachClient { summary, owner, .. }) => {
                let since = Duration::from_millis(summary.started_ms);
                let details = VmDetails {
                    image: summary.image.into(),
                    vcpus: summary.vcpus,
                    memory_mib: summary.memory_mib,
                    started: SystemTime::UNIX_EPOCH + since,
                    keeps_disk: summary.keeps_disk,
                    is_paused: summary.is_paused,
                };
                (owner, VmStatus::Answering(details))
            }
            FoundVm::NotAnswering { owner } => (owner, VmStatus::NotAnswering),
            FoundVm::OtherVersion { owner } => (owner, VmStatus::OtherVersion),
        };
        VmInfo {
            id: name.id().to_owned(),
            owner_pid,
            status,
        }
    });
    Ok(infos.collect())
}

/// How long the owner may take to report how the VM ended after the link is
/// lost: the VMM may exit a moment later, and the owner waits for the agent's
/// report.
const END_REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Attaches to a VM, unless the path that it was started from is not the one that is
/// meant: then there is no such VM.
pub(super) async fn attach_if(id: &str, is_meant: impl FnOnce(&Path) -> bool) -> Result<Vm, Error> {
    let no_such_vm = || Error::NoSuchVm { id: id.to_owned() };
    let name = VmName::new(id).ok_or_else(no_such_vm)?;
    let client = connect_if(&name, is_meant).await?;
    let acceleration = client.summary.acceleration();
    let backend = client.summary.backend.clone();
    let warnings = client.summary.warnings.clone();
    let keeps_disk = client.summary.keeps_disk;
    let socket = client.attach().await.map_err(|_| no_such_vm())?;
    let session =
        Session::connect(Link::socket(socket), None)
            .await
            .map_err(|error| match error {
                // The VM is just ending.
                LinkError::Closed | LinkError::Io(_) => no_such_vm(),
                other => Error::Transport(other.to_string()),
            })?;
    let session = Arc::new(session);
    let watching = connect_to_owner(&name).await?;
    let (state_sender, state) = watch::channel(VmState::Running);
    let state_sender = Arc::new(state_sender);
    let on_pause = {
        let (session, state) = (Arc::downgrade(&session), state_sender.clone());
        move |notice| apply_notice(notice, &session, &state)
    };
    if watching.summary.is_paused {
        on_pause(PauseNotice::Paused);
    }
    let end = watch_end(watching, session.link_error(), on_pause);
    tokio::spawn(async move {
        tokio::select! {
            end = end => {
                state_sender.send_replace(VmState::Ended(end));
            }
            // All handles are dropped.
            () = state_sender.closed() => {}
        }
    });
    Ok(Vm::new(Shared {
        id: id.to_owned(),
        session,
        state,
        control: Control::Attached(name),
        keeps_disk,
        facts: None,
        backend,
        rejected_backends: None,
        confinement: None,
        quotas: None,
        warnings,
        acceleration,
        link: LinkChoice::new(LinkKind::Relay, "another program owns the VM"),
        console: Console::default(),
        baseline: Arc::default(),
        file_permits: Arc::new(Semaphore::new(Vm::FILE_PERMITS)),
        ports: Arc::default(),
        network: None,
        metrics: None,
        #[cfg(feature = "terminal")]
        terminals: crate::terminal::Followers::default(),
    }))
}

/// Applies what the owner tells to the handle. Whether requests wait or are refused is
/// up to the owner, who knows first: this program only has to know for its timeouts.
fn apply_notice(notice: PauseNotice, session: &Weak<Session>, state: &watch::Sender<VmState>) {
    let Some(session) = session.upgrade() else {
        return;
    };
    let next = match notice {
        PauseNotice::Paused => {
            session.pauses().begin();
            VmState::Paused
        }
        PauseNotice::Running => {
            session.pauses().end();
            VmState::Running
        }
    };
    state.send_replace(next);
}

/// Waits for the end of a VM. The owner closes the link when the VM ends, and the
/// VM ends when the owner does.
async fn watch_end(
    client: AttachClient,
    mut link_error: watch::Receiver<Option<LinkError>>,
    on_pause: impl FnMut(PauseNotice),
) -> VmEnd {
    let mut watching = pin!(client.watch(on_pause));
    let mut link_lost = pin!(async move {
        let _ = link_error.wait_for(Option::is_some).await;
    });
    let end = tokio::select! {
        end = &mut watching => {
            // The link must be closed before the VM is reported to have ended.
            link_lost.await;
            end.ok()
        }
        () = &mut link_lost => {
            timeout(END_REPORT_TIMEOUT, watching).await.ok().and_then(Result::ok)
        }
    };
    end.unwrap_or(VmEnd::unknown())
}

/// Requests the baseline from the owner.
pub(super) async fn baseline(name: &VmName) -> Result<Bytes, Error> {
    let client = connect_to_owner(name).await?;
    let asked = client.baseline().await;
    asked.map_err(Error::host("ask the program that owns the VM"))
}

/// Asks the owner to pause or resume the VM.
pub(super) async fn change(
    name: &VmName,
    request: ControlRequest,
    doing: &'static str,
) -> Result<(), Error> {
    let client = connect_to_owner(name).await?;
    let id = || name.id().to_owned();
    match client.change(request).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(reason)) => Err(Error::OwnerFailed {
            id: id(),
            doing,
            reason,
        }),
        // The VM has ended meanwhile.
        Err(_) => Err(Error::NoSuchVm { id: id() }),
    }
}

/// Asks the owner to take a snapshot of the VM.
pub(super) async fn snapshot(
    name: &VmName,
    path: PathBuf,
    options: SnapshotOptions,
) -> Result<SnapshotReport, Error> {
    let client = connect_to_owner(name).await?;
    let id = || name.id().to_owned();
    match client.snapshot(&path, options).await {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(reason)) => Err(Error::OwnerFailed {
            id: id(),
            doing: "take a snapshot of it",
            reason,
        }),
        // The VM has ended meanwhile.
        Err(_) => Err(Error::NoSuchVm { id: id() }),
    }
}

/// Asks the owner to go on in a new layer of the VM's disk.
pub(super) async fn switch_disk(name: &VmName, path: &Path) -> Result<Duration, Error> {
    let client = connect_to_owner(name).await?;
    let id = || name.id().to_owned();
    match client.switch_disk(path).await {
        Ok(Ok(pause)) => Ok(pause),
        Ok(Err(reason)) => Err(Error::OwnerFailed {
            id: id(),
            doing: "switch its disk",
            reason,
        }),
        // The VM has ended meanwhile.
        Err(_) => Err(Error::NoSuchVm { id: id() }),
    }
}

/// Asks the owner for the status of the network.
pub(super) async fn network_status(name: &VmName) -> Result<NetworkStatus, Error> {
    let status = connect_to_owner(name).await?.network().await;
    status.map_err(Error::host("ask the program that owns the VM"))
}

/// Asks the owner for the quotas. Returns `None` if it does not answer, or is of an older version.
pub(super) async fn quotas(name: &VmName) -> Option<QuotaUsage> {
    connect_to_owner(name).await.ok()?.quotas().await.ok()
}

/// Asks the owner for what happens on the network.
pub(super) async fn network_log(name: &VmName) -> Result<NetworkLog, Error> {
    let log = connect_to_owner(name).await?.network_log().await;
    log.map_err(Error::host("ask the program that owns the VM"))
}

/// Asks the owner to stop or kill the VM. `None` if the VM is gone already.
pub(super) async fn end_vm(name: &VmName, request: ControlRequest) -> Result<Option<VmEnd>, Error> {
    match connect_to_owner(name).await {
        Ok(client) => client
            .control(request)
            .await
            .map(Some)
            .map_err(Error::host("ask the program that owns the VM")),
        Err(Error::NoSuchVm { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Connects to the owner of a VM, as [`attach_if`].
pub(super) async fn connect_if(
    name: &VmName,
    is_meant: impl FnOnce(&Path) -> bool,
) -> Result<AttachClient, Error> {
    let client = connect_to_owner(name).await?;
    match is_meant(Path::new(&client.summary.image)) {
        true => Ok(client),
        false => Err(Error::NoSuchVm {
            id: name.id().to_owned(),
        }),
    }
}

pub(super) async fn connect_to_owner(name: &VmName) -> Result<AttachClient, Error> {
    let found = attach::find(name).await;
    let found = found.map_err(Error::host("reach the program that owns the VM"))?;
    let id = name.id().to_owned();
    match found {
        Some(FoundVm::Answering(client)) => Ok(client),
        Some(FoundVm::NotAnswering { owner }) => Err(Error::OwnerNotAnswering {
            id,
            owner_pid: owner,
            after: ANSWER_TIMEOUT,
        }),
        Some(FoundVm::OtherVersion { .. }) => Err(Error::OwnerVersion { id }),
        None => Err(Error::NoSuchVm { id }),
    }
}
