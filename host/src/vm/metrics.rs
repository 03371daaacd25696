use std::time::Duration;

use tokio::time::timeout;

use super::{Vm, attached, handle::Control};
use crate::{
    attach::VmName,
    error::Error,
    metrics::{
        AllMetrics, Metrics, MetricsHistory, MetricsRequest, MetricsTier, NO_METRICS, Sample,
    },
    session::LinkTraffic,
};

/// How long it may take from the end of the VMM, after which there are no samples, until the
/// VM has ended.
const END_TIMEOUT: Duration = Duration::from_secs(5);

const NOT_MEASURED: &str = "the VM has no metrics: its VMM cannot be seen in /proc";

impl Vm {
    /// Returns how many bytes were received and sent on its link by those who use it. `None`
    /// as long as somebody looks at it.
    pub(crate) fn link_traffic(&self) -> Option<LinkTraffic> {
        self.shared.session.noticed_traffic()
    }

    /// Returns what the VM has used of this machine: processor, memory, disk, processes and
    /// link. See [`metrics`](crate::metrics).
    ///
    /// The first sample is there a second after the start. The program that owns a VM can
    /// still read its metrics when it has ended.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// use vmcell::metrics::MetricsTier;
    ///
    /// let metrics = vm.metrics(MetricsTier::TenMinutes).await?;
    /// for sample in &metrics.samples {
    ///     let mib = sample.memory_bytes >> 20;
    ///     println!("{:?} {:.0} % {mib} MiB", sample.elapsed, sample.cpu_percent);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] if the VM has no metrics, because it is
    /// [unlisted](crate::VmBuilder::unlisted) or there is no VM. On an
    /// [attached](Self::attach) handle, [`Error::OwnerFailed`] in its place,
    /// [`Error::NoSuchVm`] if the VM has ended, [`Error::OwnerNotAnswering`] and
    /// [`Error::OwnerVersion`] as for that.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn metrics(&self, tier: MetricsTier) -> Result<Metrics, Error> {
        match &self.shared.control {
            Control::Owner { .. } => Ok(self.metrics_history()?.metrics(tier)),
            Control::Attached(name) => {
                let client = attached::connect_to_owner(name).await?;
                let answer = client.metrics(MetricsRequest::Tier(tier)).await;
                owner_answer(name, answer)
            }
        }
    }

    /// Returns the samples of all tiers, and forgets them: each sample is returned once,
    /// whoever asks. Sampling goes on.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// let all = vm.flush_metrics().await?;
    /// println!("{} samples of the last day", all.one_day.samples.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`metrics`](Self::metrics).
    ///
    /// # Cancel safety
    /// Does not wait in the program that owns the VM. On an [attached](Self::attach) handle,
    /// samples may be lost if the future is dropped: forgotten by the owner, and not
    /// returned.
    pub async fn flush_metrics(&self) -> Result<AllMetrics, Error> {
        match &self.shared.control {
            Control::Owner { .. } => Ok(self.metrics_history()?.flush()),
            Control::Attached(name) => {
                let client = attached::connect_to_owner(name).await?;
                owner_answer(name, client.flush_metrics().await)
            }
        }
    }

    /// Waits for a sample that is taken after this call, at most a second and a half, and
    /// returns it. It is already in the [`metrics`](Self::metrics) of each tier.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// loop {
    ///     println!("{:.0} %", vm.next_sample().await?.cpu_percent);
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM has ended, the others as for [`metrics`](Self::metrics).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next_sample(&self) -> Result<Sample, Error> {
        match &self.shared.control {
            Control::Owner { .. } => match self.metrics_history()?.next_sample().await {
                Some(sample) => Ok(sample),
                None => match timeout(END_TIMEOUT, self.ended()).await {
                    Ok(end) => Err(Error::Gone(end.reason)),
                    Err(_) => Err(Error::Invalid(NOT_MEASURED.to_owned())),
                },
            },
            Control::Attached(name) => {
                let client = attached::connect_to_owner(name).await?;
                let answer = client.metrics(MetricsRequest::NextSample).await;
                owner_answer(name, answer)
            }
        }
    }

    fn metrics_history(&self) -> Result<&MetricsHistory, Error> {
        let history = self.shared.metrics.as_deref();
        history.ok_or_else(|| Error::Invalid(NO_METRICS.to_owned()))
    }
}

/// Returns the answer of the owner, or its error.
fn owner_answer<T>(name: &VmName, answer: std::io::Result<Result<T, String>>) -> Result<T, Error> {
    let id = || name.id().to_owned();
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(reason)) => Err(Error::OwnerFailed {
            id: id(),
            doing: "return its metrics",
            reason,
        }),
        // The VM has ended meanwhile.
        Err(_) => Err(Error::NoSuchVm { id: id() }),
    }
}
