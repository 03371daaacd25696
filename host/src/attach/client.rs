use std::{io, os::unix::ffi::OsStrExt as _, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

use super::{
    BaselineSlot, ControlRequest, PauseNotice, VmName, VmSummary, change_record, end_record,
    listener::{ConnectOutcome, Connection, Listener, our_listeners},
    quota_record::QuotaRecord,
    snapshot_record,
};
use crate::{
    framed,
    metrics::{AllMetrics, MetricsRequest},
    network::{NetworkLog, NetworkStatus},
    quotas::QuotaUsage,
    service::ServicesRequest,
    snapshot::{SnapshotOptions, SnapshotReport},
    vm::VmEnd,
};

/// A client's connection to the owner of a VM, before its request.
#[derive(Debug)]
pub(crate) struct AttachClient {
    socket: UnixStream,
    pub(crate) summary: VmSummary,
    /// The process id of the program that owns the VM.
    pub(crate) owner: Option<u32>,
}

/// A VM of our own user, by how its owner answers.
#[derive(Debug)]
pub(crate) enum FoundVm {
    Answering(AttachClient),
    /// The owner does not accept the connection, or sends no summary in time.
    NotAnswering {
        owner: Option<u32>,
    },
    /// The owner has another version of vmcell.
    OtherVersion {
        owner: Option<u32>,
    },
}

/// How long an owner may take to send its summary.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How many owners are queried at once. Each takes a descriptor.
const MAX_CONCURRENT_QUERIES: usize = 128;

impl AttachClient {
    /// Waits for the summary. `None` if the VM is just ending.
    async fn query(connection: Connection) -> Option<FoundVm> {
        let Connection { mut socket, owner } = connection;
        let summary = match timeout(ANSWER_TIMEOUT, VmSummary::receive(&mut socket)).await {
            Ok(Ok(summary)) => summary,
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Some(FoundVm::OtherVersion { owner });
            }
            Ok(Err(_)) => return None,
            Err(_) => return Some(FoundVm::NotAnswering { owner }),
        };
        Some(FoundVm::Answering(Self {
            socket,
            summary,
            owner,
        }))
    }

    /// Attaches. After this the socket carries the wire protocol.
    pub(crate) async fn attach(mut self) -> io::Result<UnixStream> {
        self.socket
            .write_all(&[ControlRequest::Attach as u8])
            .await?;
        Ok(self.socket)
    }

    /// Requests the baseline. It is empty if the owner has none.
    pub(crate) async fn baseline(mut self) -> io::Result<Bytes> {
        self.socket
            .write_all(&[ControlRequest::Baseline as u8])
            .await?;
        BaselineSlot::receive(&mut self.socket).await
    }

    /// Requests to pause or resume the VM. Returns the owner's error if it cannot.
    pub(crate) async fn change(
        mut self,
        request: ControlRequest,
    ) -> io::Result<Result<(), String>> {
        self.socket.write_all(&[request as u8]).await?;
        change_record::receive(&mut self.socket).await
    }

    /// Requests a snapshot. Returns the owner's error if it cannot be taken.
    pub(crate) async fn snapshot(
        mut self,
        path: &Path,
        options: SnapshotOptions,
    ) -> io::Result<Result<SnapshotReport, String>> {
        self.socket
            .write_all(&[ControlRequest::Snapshot as u8])
            .await?;
        snapshot_record::send_request(&mut self.socket, path, options).await?;
        snapshot_record::receive_result(&mut self.socket).await
    }

    /// Requests that the VM goes on in a new layer of its disk. Returns the owner's error
    /// if it cannot.
    pub(crate) async fn switch_disk(mut self, path: &Path) -> io::Result<Result<Duration, String>> {
        let request = ControlRequest::SwitchDisk as u8;
        self.socket.write_all(&[request]).await?;
        framed::send(&mut self.socket, &path.as_os_str().as_bytes()).await?;
        framed::receive(&mut self.socket).await
    }

    /// Requests the status of the network.
    pub(crate) async fn network(mut self) -> io::Result<NetworkStatus> {
        let request = ControlRequest::Network as u8;
        self.socket.write_all(&[request]).await?;
        framed::receive(&mut self.socket).await
    }

    /// Requests the quotas, and how much of them is used.
    pub(crate) async fn quotas(mut self) -> io::Result<QuotaUsage> {
        let request = ControlRequest::Quotas as u8;
        self.socket.write_all(&[request]).await?;
        let record: QuotaRecord = framed::receive(&mut self.socket).await?;
        Ok(record.into())
    }

    /// Requests what happens on the network.
    pub(crate) async fn network_log(mut self) -> io::Result<NetworkLog> {
        let request = ControlRequest::NetworkLog as u8;
        self.socket.write_all(&[request]).await?;
        NetworkLog::receive(self.socket).await
    }

    /// Requests metrics. Returns the owner's error if there are none.
    pub(crate) async fn metrics<T: for<'a> Deserialize<'a>>(
        mut self,
        request: MetricsRequest,
    ) -> io::Result<Result<T, String>> {
        let byte = ControlRequest::Metrics as u8;
        self.socket.write_all(&[byte]).await?;
        framed::send(&mut self.socket, &request).await?;
        framed::receive(&mut self.socket).await
    }

    /// Requests all metrics, which the owner then forgets. Returns its error if there are
    /// none.
    pub(crate) async fn flush_metrics(mut self) -> io::Result<Result<AllMetrics, String>> {
        let request = ControlRequest::FlushMetrics as u8;
        self.socket.write_all(&[request]).await?;
        framed::receive(&mut self.socket).await
    }

    /// Sends a request for its services. The socket is for the answer.
    pub(crate) async fn services(mut self, request: &ServicesRequest) -> io::Result<UnixStream> {
        let byte = ControlRequest::Services as u8;
        self.socket.write_all(&[byte]).await?;
        framed::send(&mut self.socket, request).await?;
        Ok(self.socket)
    }

    /// Waits until the VM has ended. Calls `on_pause` when it is paused or resumed. The
    /// end is unknown if the owner is gone.
    pub(crate) async fn watch(
        mut self,
        mut on_pause: impl FnMut(PauseNotice),
    ) -> io::Result<VmEnd> {
        self.socket
            .write_all(&[ControlRequest::Watch as u8])
            .await?;
        loop {
            let Ok(byte) = self.socket.read_u8().await else {
                return Ok(VmEnd::unknown());
            };
            match PauseNotice::from_byte(byte) {
                Some(notice) => on_pause(notice),
                None => {
                    let end = end_record::receive_after(byte, &mut self.socket).await;
                    return Ok(end.unwrap_or(VmEnd::unknown()));
                }
            }
        }
    }

    /// Requests to stop or kill the VM, and waits until it has ended. Returns an
    /// unknown end if the owner is gone without reporting one; the VM is gone with it.
    pub(crate) async fn control(mut self, request: ControlRequest) -> io::Result<VmEnd> {
        self.socket.write_all(&[request as u8]).await?;
        let end = end_record::receive(&mut self.socket).await;
        Ok(end.unwrap_or(VmEnd::unknown()))
    }
}

/// Finds the VM with this name. `None` if no program of our own user has it.
pub(crate) async fn find(name: &VmName) -> io::Result<Option<FoundVm>> {
    // Usually this succeeds, and no listing is needed.
    if let ConnectOutcome::Connected(connection) = Listener::at_default_address(name).connect()? {
        return Ok(AttachClient::query(connection).await);
    }
    let mut listeners = our_listeners().await?;
    listeners.retain(|listener| listener.name == *name);
    let mut found = None;
    for listener in listeners {
        found = query_listener(&listener).await?.or(found);
        if matches!(found, Some(FoundVm::Answering(_))) {
            break;
        }
    }
    Ok(found)
}

/// Returns all VMs of our own user, by name. Waits for owners that do not answer,
/// [`MAX_CONCURRENT_QUERIES`] at a time. Sockets of other users cost no time.
pub(crate) async fn list() -> io::Result<Vec<(VmName, FoundVm)>> {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_QUERIES));
    let mut querying = JoinSet::new();
    for listener in our_listeners().await? {
        let permits = permits.clone();
        querying.spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire().await;
            (query_listener(&listener).await, listener.name)
        });
    }
    let mut list = Vec::new();
    while let Some(queried) = querying.join_next().await {
        let (found, name) = queried.map_err(io::Error::other)?;
        if let Some(found) = found? {
            list.push((name, found));
        }
    }
    list.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(list)
}

/// Connects to a socket of our own user and waits for the summary.
async fn query_listener(listener: &Listener) -> io::Result<Option<FoundVm>> {
    Ok(match listener.connect()? {
        ConnectOutcome::Connected(connection) => AttachClient::query(connection).await,
        ConnectOutcome::QueueFull => Some(FoundVm::NotAnswering { owner: None }),
        ConnectOutcome::NotOurs => None,
    })
}
