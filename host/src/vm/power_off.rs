//! Powers the guest off, with the driver or without it.

use std::{pin::pin, thread, time::Duration};

use tokio::time::{sleep, timeout};
use vmcell_wire::{Outcome, Request};

use super::{
    End, VmEnd,
    state::{Report, VmmExit},
};
use crate::{
    session::{LinkError, OpenError, Route, Session, Stream, StreamEvent},
    vmm::Vmm,
};

/// How long processes in the guest may take to react to SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// How long the guest may take to power off.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long it may take to read a report after the VMM has exited.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks the agent to power off. Dropping the stream cancels the request.
pub(super) fn request(session: &Session) -> Result<Stream, OpenError> {
    session.lift_rate();
    let grace_ms = u32::try_from(TERM_GRACE.as_millis()).unwrap_or(u32::MAX);
    session.open(&Request::PowerOff { grace_ms })
}

/// Waits for the agent's report. Returns [`Report::Missing`] if the link is lost.
///
/// Cancel safe.
pub(super) async fn report(stream: &mut Stream) -> Report {
    match stream.next().await {
        Ok(StreamEvent::Closed(closing)) => match closing.outcome() {
            Outcome::DiskClean => Report::Clean,
            Outcome::PoweringOff => Report::PoweringOff,
            _ => Report::NotClean,
        },
        Ok(_) => Report::NotClean,
        Err(_) => Report::Missing,
    }
}

/// Waits for the report after the VMM has exited. It may be unread still.
pub(super) async fn last_report(reporting: impl Future<Output = Report>) -> Report {
    let report = timeout(REPORT_TIMEOUT, reporting).await;
    report.unwrap_or(Report::Missing)
}

/// Stops a VM without the runtime of its driver, which is shutting down. Blocks
/// until the VM has ended, for [`STOP_TIMEOUT`] at most; then kills the VM.
pub(super) fn stop_blocking(route: &Route, boot_id: [u8; 16], vmm: &mut Vmm) -> Option<VmEnd> {
    thread::scope(|scope| {
        // A thread of a runtime cannot run another runtime.
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
        VmmExit {
            status,
            report,
            has_used_cpu_time: vmm.has_used_cpu_time(),
        }
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

/// Requests the power-off on a new link until there is an answer. Keeps the
/// session, so that the agent's report is acknowledged.
async fn retry_request(route: &Route, boot_id: [u8; 16], session: &mut Option<Session>) -> Report {
    /// The reader of the old link may have consumed the answer, so the request is
    /// repeated.
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
