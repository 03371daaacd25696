use std::{
    convert::Infallible,
    ffi::OsString,
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStringExt as _,
            net::{SocketAddr, UnixListener as StdUnixListener},
        },
    },
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream, unix::WriteHalf},
    sync::{oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use super::{
    BaselineSlot, ControlRequest, PauseNotice, VmName, VmSummary, change_record, end_record,
    listener::our_listeners, name::our_uid, quota_record::QuotaRecord, snapshot_record,
};
use crate::{
    error::Error,
    framed,
    metrics::{self, MetricsHistory},
    network::Network,
    port::PublishedPorts,
    quotas::QuotaUsage,
    random::random_bytes,
    service,
    session::{Session, relay},
    snapshot::{SnapshotOptions, SnapshotReport},
    vm::VmEnd,
};

/// How long to wait after a failed accept, which usually fails for want of
/// descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The owner's listening socket, before it accepts clients.
#[derive(Debug)]
pub(crate) struct AttachSocket(StdUnixListener);

/// The task that serves clients. Dropping this aborts it.
#[derive(Debug)]
pub(crate) struct AttachServer {
    task: JoinHandle<()>,
    /// Set when the VM has ended.
    end: watch::Sender<Option<VmEnd>>,
}

/// How long it may take to report the end to clients. The record fits into a
/// socket's buffer, so it takes no time unless a client did not read before.
const END_NOTICE_TIMEOUT: Duration = Duration::from_millis(500);

impl AttachServer {
    /// Releases the name, reports to clients how the VM ended, and closes their
    /// connections.
    pub(crate) async fn shut_down(mut self, end: VmEnd) {
        self.end.send_replace(Some(end));
        // Fails only if the runtime shuts down.
        let _ = (&mut self.task).await;
    }
}

impl Drop for AttachServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AttachSocket {
    /// Claims the name. Clients wait until [`serve`](Self::serve).
    ///
    /// # Errors
    /// [`Error::IdTaken`] if a program of our own user has the name. An address
    /// that another user has bound is replaced by a fallback.
    pub(crate) async fn claim(name: &VmName) -> Result<Self, Error> {
        const DOING: &str = "make the VM known to other programs";
        match bind(&name.address()) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound.map(Self).map_err(Error::host(DOING)),
        }
        let random = u64::from_ne_bytes(random_bytes()?);
        let fallback = bind(&name.fallback_address(random)).map_err(Error::host(DOING))?;
        // After the bind: of two VMs that start at once, at least one sees the
        // other.
        let ours = our_listeners().await.map_err(Error::host(DOING))?;
        let same_id = ours.iter().filter(|other| other.name == *name);
        match same_id.count() {
            0 | 1 => Ok(Self(fallback)),
            _ => Err(Error::IdTaken {
                id: name.id().to_owned(),
            }),
        }
    }

    /// Starts to serve clients.
    pub(crate) fn serve(
        self,
        summary: VmSummary,
        baseline: Arc<BaselineSlot>,
        session: Arc<Session>,
        vm: impl OwnedVm,
    ) -> Result<AttachServer, Error> {
        let listener = self
            .0
            .set_nonblocking(true)
            .and_then(|()| UnixListener::from_std(self.0))
            .map_err(Error::host("make the VM known to other programs"))?;
        let (end, mut vm_end) = watch::channel(None);
        let task = tokio::spawn(async move {
            let (end_sender, end_receiver) = watch::channel(None);
            let mut clients = JoinSet::new();
            let end = loop {
                tokio::select! {
                    end = wait_for_end(&mut vm_end) => break end,
                    Some(_) = clients.join_next() => {}
                    accepted = listener.accept() => match accepted {
                        Ok((socket, _)) => {
                            let (summary, baseline) = (summary.clone(), baseline.clone());
                            let (session, vm) = (session.clone(), vm.clone());
                            let end = end_receiver.clone();
                            let serving = serve_client(socket, summary, baseline, session, vm, end);
                            clients.spawn(serving);
                        }
                        Err(error) => {
                            tracing::debug!(%error, "cannot accept a connection");
                            // A client that disconnects frees a descriptor. There
                            // is no event when the rest of the program frees one.
                            tokio::select! {
                                Some(_) = clients.join_next() => {}
                                () = sleep(ACCEPT_PAUSE) => {}
                            }
                        }
                    }
                }
            };
            // Releases the id before the end is reported.
            drop(listener);
            end_sender.send_replace(Some(end));
            let notifying = async { while clients.join_next().await.is_some() {} };
            let _ = timeout(END_NOTICE_TIMEOUT, notifying).await;
        });
        Ok(AttachServer { task, end })
    }
}

/// What clients can have done with the VM.
pub(crate) trait OwnedVm: Clone + Send + Sync + 'static {
    /// Stops, kills, pauses or resumes it.
    fn request(&self, request: ControlRequest) -> Option<ChangeResult>;

    /// Returns its network.
    fn network(&self) -> &Network;

    /// Returns its quotas, and how much of them is used.
    fn quotas(&self) -> QuotaUsage;

    /// Returns its published ports. `None` if it has just ended.
    fn ports(&self) -> Option<Arc<PublishedPorts>>;

    /// Returns its metrics, if it has any.
    fn metrics(&self) -> Option<&MetricsHistory>;

    /// Goes on in a new layer of its disk. Returns how long its processors stood still.
    fn switch_disk(&self, path: PathBuf) -> impl Future<Output = Result<Duration, Error>> + Send;

    /// Takes a snapshot of it.
    fn snapshot(
        &self,
        path: PathBuf,
        options: SnapshotOptions,
    ) -> impl Future<Output = Result<SnapshotReport, Error>> + Send;
}

/// Where the result of a request to pause or resume the VM arrives.
pub(crate) type ChangeResult = oneshot::Receiver<Result<(), Error>>;

/// Waits until the VM has ended.
async fn wait_for_end(end: &mut watch::Receiver<Option<VmEnd>>) -> VmEnd {
    let end = end.wait_for(Option::is_some).await.map_or(None, |end| *end);
    match end {
        Some(end) => end,
        // The sender is dropped, and this task is about to be aborted.
        None => std::future::pending().await,
    }
}

fn bind(address: &str) -> io::Result<StdUnixListener> {
    let address = SocketAddr::from_abstract_name(address)?;
    StdUnixListener::bind_addr(&address)
}

/// Serves one client, until it disconnects or is answered.
async fn serve_client(
    mut socket: UnixStream,
    mut summary: VmSummary,
    baseline: Arc<BaselineSlot>,
    session: Arc<Session>,
    vm: impl OwnedVm,
    mut end: watch::Receiver<Option<VmEnd>>,
) -> io::Result<()> {
    // Other users get no answer.
    if socket.peer_cred()?.uid() != our_uid() {
        return Ok(());
    }
    let is_paused = session.pauses().is_paused();
    summary.is_paused = is_paused;
    summary.send(&mut socket).await?;
    let mut request = [0];
    socket.read_exact(&mut request).await?;
    match ControlRequest::from_byte(request[0]) {
        None => {}
        Some(ControlRequest::Attach) => tokio::select! {
            () = relay(socket, session) => {}
            _ = wait_for_end(&mut end) => {}
        },
        Some(ControlRequest::Baseline) => baseline.send(&mut socket).await?,
        Some(
            request @ (ControlRequest::Pause
            | ControlRequest::PauseAndRefuse
            | ControlRequest::Resume),
        ) => {
            // Without an answer of the driver the VM has ended, which the client learns
            // from the hangup.
            if let Some(result) = vm.request(request)
                && let Ok(result) = result.await
            {
                change_record::send(&mut socket, result).await?;
            }
        }
        Some(ControlRequest::Snapshot) => {
            let (path, options) = snapshot_record::receive_request(&mut socket).await?;
            let result = vm.snapshot(path, options).await;
            snapshot_record::send_result(&mut socket, result).await?;
        }
        Some(ControlRequest::SwitchDisk) => {
            let path: Vec<u8> = framed::receive(&mut socket).await?;
            let result = vm.switch_disk(OsString::from_vec(path).into()).await;
            let result = result.map_err(|error| error.with_causes());
            framed::send(&mut socket, &result).await?;
        }
        Some(ControlRequest::Network) => {
            framed::send(&mut socket, &vm.network().status()).await?;
        }
        Some(ControlRequest::Quotas) => {
            framed::send(&mut socket, &QuotaRecord::from(vm.quotas())).await?;
        }
        Some(ControlRequest::Metrics) => tokio::select! {
            served = metrics::serve(&mut socket, vm.metrics()) => served?,
            _ = wait_for_end(&mut end) => {}
        },
        Some(ControlRequest::FlushMetrics) => {
            metrics::serve_flush(&mut socket, vm.metrics()).await?;
        }
        Some(ControlRequest::Services) => {
            if let Some(ports) = vm.ports() {
                let allows_ports = vm.network().status().published_ports;
                tokio::select! {
                    served = service::serve(&mut socket, &session, &ports, allows_ports) => served?,
                    _ = wait_for_end(&mut end) => {}
                }
            }
        }
        Some(ControlRequest::NetworkLog) => {
            let (mut reader, mut writer) = socket.split();
            tokio::select! {
                sent = vm.network().log().send(&mut writer) => sent?,
                _ = wait_for_end(&mut end) => {}
                // A client sends nothing more, so it has disconnected.
                _ = reader.read_u8() => {}
            }
        }
        Some(ControlRequest::Watch) => {
            let (mut reader, mut writer) = socket.split();
            let noticing = notify_of_pauses(&mut writer, &session, is_paused);
            let end = tokio::select! {
                end = wait_for_end(&mut end) => end,
                error = noticing => return error.map(|never| match never {}),
                // A client sends nothing more, so it has disconnected.
                _ = reader.read_u8() => return Ok(()),
            };
            end_record::send(&mut socket, end).await?;
        }
        Some(request @ (ControlRequest::Stop | ControlRequest::Kill)) => {
            vm.request(request);
            tokio::select! {
                end = wait_for_end(&mut end) => end_record::send(&mut socket, end).await?,
                // A client sends nothing more, so it has disconnected.
                _ = socket.read_u8() => {}
            }
        }
    }
    Ok(())
}

/// Tells a client whenever the VM is paused or resumed.
async fn notify_of_pauses(
    writer: &mut WriteHalf<'_>,
    session: &Session,
    mut is_paused: bool,
) -> io::Result<Infallible> {
    loop {
        is_paused = session.pauses().changed(is_paused).await;
        let notice = match is_paused {
            true => PauseNotice::Paused,
            false => PauseNotice::Running,
        };
        writer.write_all(&[notice as u8]).await?;
    }
}
