//! What the agent says at the end, and an orderly end without the driver.

use std::{pin::pin, thread, time::Duration};

use tokio::time::{sleep, timeout};
use vmcell_wire::Request;

use super::{
    End, VmEnd,
    state::{Report, VmmExit},
};
use crate::{
    session::{Closing, LinkError, OpenError, Route, Session, Stream, StreamEvent},
    vmm::Vmm,
};

/// How long processes in the guest may take to react to SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// How long the guest may take to power off.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a report may take to be read when the VMM that sent it has ended.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks the agent to power off. Dropping the stream takes the request back.
pub(super) fn request(session: &Session) -> Result<Stream, OpenError> {
    let grace_ms = u32::try_from(TERM_GRACE.as_millis()).unwrap_or(u32::MAX);
    session.open(&Request::PowerOff { grace_ms })
}

/// Waits for what the agent reports. It is missing if the link is lost.
///
/// Cancel safe.
pub(super) async fn report(stream: &mut Stream) -> Report {
    match stream.next().await {
        Ok(StreamEvent::Closed(Closing::DiskClean)) => Report::Clean,
        Ok(StreamEvent::Closed(Closing::PoweringOff)) => Report::PoweringOff,
        Ok(_) => Report::NotClean,
        Err(_) => Report::Missing,
    }
}

/// The report of an agent whose VMM has ended. It may still wait to be read.
pub(super) async fn last_report(reporting: impl Future<Output = Report>) -> Report {
    let report = timeout(REPORT_TIMEOUT, reporting).await;
    report.unwrap_or(Report::Missing)
}

/// Stops a VM in order, without the runtime that its driver ran on: that one is
/// shutting down. Blocks until the VM has ended, for [`STOP_TIMEOUT`] at most;
/// then the VM is killed.
pub(super) fn stop_blocking(route: &Route, boot_id: [u8; 16], vmm: &mut Vmm) -> Option<VmEnd> {
    thread::scope(|scope| {
        // A thread that belongs to a runtime cannot run another one.
        let stopping = thread::Builder::new()
            .name("vmcell-stop".to_owned())
            .spawn_scoped(scope, || {
                let mut builder = tokio::runtime::Builder::new_current_thread();
                let runtime = builder.enable_all().build().ok()?;
                Some(runtime.block_on(stop(route, boot_id, vmm)))
            });
        stopping.ok()?.join().ok().flatten()
    })
}

async fn stop(route: &Route, boot_id: [u8; 16], vmm: &mut Vmm) -> VmEnd {
    let stopping = async {
        let mut session = None;
        let mut reporting = pin!(retry_request(route, boot_id, &mut session));
        let report = tokio::select! {
            report = &mut reporting => report,
            () = vmm.any_exited() => last_report(reporting).await,
        };
        let status = vmm.exited().await;
        VmmExit { status, report }
    };
    let stopped = timeout(STOP_TIMEOUT, stopping).await;
    match stopped {
        Ok(exit) => exit.end_of_stop(),
        Err(_) => {
            vmm.killer().kill();
            VmEnd {
                reason: End::StopTimedOut,
                status: vmm.exited().await,
            }
        }
    }
}

/// Asks for the power-off on a link of its own until there is an answer. The
/// session stays, so that the agent learns that its report has arrived.
async fn retry_request(route: &Route, boot_id: [u8; 16], session: &mut Option<Session>) -> Report {
    /// A reader of the first link may have taken the answer, so the agent is
    /// asked again.
    const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
    const RETRY_PAUSE: Duration = Duration::from_millis(50);
    loop {
        let connecting = async {
            let link = route.link().await?;
            Session::connect(link, Some(boot_id)).await
        };
        let connected = timeout(ANSWER_TIMEOUT, connecting).await;
        let asked = match connected.unwrap_or(Err(LinkError::PeerNotReading)) {
            Ok(new_session) => request(session.insert(new_session)).ok(),
            Err(_) => None,
        };
        match asked {
            Some(mut stream) => return report(&mut stream).await,
            None => sleep(RETRY_PAUSE).await,
        }
    }
}
