//! VMs that other programs run.

use std::{
    pin::pin,
    sync::Arc,
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
    attach::{self, ANSWER_TIMEOUT, ControlRequest, Found, Name, Visitor},
    console::Console,
    error::Error,
    link::{LinkChoice, LinkKind},
    session::{Link, LinkError, Session},
};

pub(super) async fn list() -> Result<Vec<VmInfo>, Error> {
    let found = attach::list().await;
    let found = found.map_err(Error::host("look for VMs"))?;
    let infos = found.into_iter().map(|(name, found)| {
        let (owner_pid, status) = match found {
            Found::Answering(Visitor { summary, owner, .. }) => {
                let since = Duration::from_millis(summary.started_ms);
                let details = VmDetails {
                    image: summary.image.into(),
                    vcpus: summary.vcpus,
                    memory_mib: summary.memory_mib,
                    started: SystemTime::UNIX_EPOCH + since,
                    keeps_disk: summary.keeps_disk,
                };
                (owner, VmStatus::Answering(details))
            }
            Found::NotAnswering { owner } => (owner, VmStatus::NotAnswering),
            Found::OtherVersion { owner } => (owner, VmStatus::OtherVersion),
        };
        VmInfo {
            id: name.id().to_owned(),
            owner_pid,
            status,
        }
    });
    Ok(infos.collect())
}

/// How long the owner may take to tell how the VM ended when its link is lost:
/// the VMM's end may take a moment longer, and the owner waits a little for
/// what the agent had to say.
const LAST_WORD: Duration = Duration::from_secs(5);

pub(super) async fn attach(id: &str) -> Result<Vm, Error> {
    let no_such_vm = || Error::NoSuchVm { id: id.to_owned() };
    let name = Name::ours(id).ok_or_else(no_such_vm)?;
    let visitor = knock(&name).await?;
    let acceleration = visitor.summary.acceleration();
    let backend = visitor.summary.backend.clone();
    let warnings = visitor.summary.warnings.clone();
    let keeps_disk = visitor.summary.keeps_disk;
    let socket = visitor.attach().await.map_err(|_| no_such_vm())?;
    let session = Session::connect(Link::socket(socket), None)
        .await
        .map_err(|lost| Error::Transport(lost.to_string()))?;
    let (told, state) = watch::channel(VmState::Running);
    let end = end_of(knock(&name).await?, session.lost());
    tokio::spawn(async move {
        tokio::select! {
            end = end => {
                told.send_replace(VmState::Ended(end));
            }
            // No handle is left that could ask.
            () = told.closed() => {}
        }
    });
    Ok(Vm::new(Shared {
        id: id.to_owned(),
        session: Arc::new(session),
        state,
        control: Control::Visitor(name),
        keeps_disk,
        backend,
        rejected_backends: Vec::new(),
        warnings,
        acceleration,
        link: LinkChoice::new(LinkKind::Relay, "another program owns the VM"),
        console: Console::default(),
        baseline: Arc::default(),
        file_permits: Arc::new(Semaphore::new(Vm::FILE_PERMITS)),
        ports: crate::port::PublishedPorts::default(),
        #[cfg(feature = "terminal")]
        terminals: crate::terminal::Followers::default(),
    }))
}

/// Waits for the end of a VM. The owner hangs up when the VM ends, and ends the
/// VM when it ends.
async fn end_of(visitor: Visitor, mut lost: watch::Receiver<Option<LinkError>>) -> VmEnd {
    let mut watching = pin!(visitor.order(ControlRequest::Watch));
    let mut hung_up = pin!(async move {
        let _ = lost.wait_for(Option::is_some).await;
    });
    let told = tokio::select! {
        told = &mut watching => {
            // Nobody can use the VM any more when it is said to have ended.
            hung_up.await;
            told.ok()
        }
        () = &mut hung_up => timeout(LAST_WORD, watching).await.ok().and_then(Result::ok),
    };
    told.unwrap_or(VmEnd::unknown())
}

/// Asks the owner how the workspace was.
pub(super) async fn baseline(name: &Name) -> Result<Bytes, Error> {
    let visitor = knock(name).await?;
    let asked = visitor.baseline().await;
    asked.map_err(Error::host("ask the program that owns the VM"))
}

/// Has the owner stop or kill the VM. One that is gone needs neither: None.
pub(super) async fn order(name: &Name, request: ControlRequest) -> Result<Option<VmEnd>, Error> {
    match knock(name).await {
        Ok(visitor) => visitor
            .order(request)
            .await
            .map(Some)
            .map_err(Error::host("ask the program that owns the VM")),
        Err(Error::NoSuchVm { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn knock(name: &Name) -> Result<Visitor, Error> {
    let found = attach::find(name).await;
    let found = found.map_err(Error::host("reach the program that owns the VM"))?;
    let id = name.id().to_owned();
    match found {
        Some(Found::Answering(visitor)) => Ok(visitor),
        Some(Found::NotAnswering { owner }) => Err(Error::OwnerNotAnswering {
            id,
            owner_pid: owner,
            after: ANSWER_TIMEOUT,
        }),
        Some(Found::OtherVersion { .. }) => Err(Error::OwnerVersion { id }),
        None => Err(Error::NoSuchVm { id }),
    }
}
