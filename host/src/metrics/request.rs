//! The metrics that a client requests of the owner of a VM.
//!
//! ```text
//!  client  MetricsRequest, or nothing for a flush
//!  owner   Result<Metrics, Sample or AllMetrics, why not>
//! ```

use std::io;

use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;

use super::{MetricsHistory, MetricsTier};
use crate::framed;

/// What a client wants to know.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum MetricsRequest {
    /// The samples of a tier.
    Tier(MetricsTier),
    /// The next sample.
    NextSample,
}

/// Why a VM has no metrics.
pub(crate) const NO_METRICS: &str =
    "the VM has no metrics: it is unlisted, or runs without a VM in the backend process";

/// Receives a request and answers it.
pub(crate) async fn serve(
    socket: &mut UnixStream,
    history: Option<&MetricsHistory>,
) -> io::Result<()> {
    let request = framed::receive(socket).await?;
    match (history, request) {
        (None, _) => framed::send(socket, &Err::<(), _>(NO_METRICS)).await,
        (Some(history), MetricsRequest::Tier(tier)) => {
            framed::send(socket, &Ok::<_, &str>(history.metrics(tier))).await
        }
        (Some(history), MetricsRequest::NextSample) => match history.next_sample().await {
            Some(sample) => framed::send(socket, &Ok::<_, &str>(sample)).await,
            // The client learns the end of the VM from the hangup.
            None => Ok(()),
        },
    }
}

/// Sends all samples, and forgets them.
pub(crate) async fn serve_flush(
    socket: &mut UnixStream,
    history: Option<&MetricsHistory>,
) -> io::Result<()> {
    let metrics = history.map(MetricsHistory::flush);
    framed::send(socket, &metrics.ok_or(NO_METRICS)).await
}
