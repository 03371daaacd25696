//! Services in the guest.

use super::{
    check::{CheckResult, ensure, ensure_eq},
    context::CheckContext,
    suite::CHECK_TIMEOUT,
};
use crate::{
    process::Command,
    service::{Probe, Readiness, ServiceSpec},
};

pub(super) async fn service(context: CheckContext) -> CheckResult {
    let command = Command::shell("echo it is ready; exec sleep 100000");
    let readiness = Readiness::new(Probe::log("ready")).timeout(CHECK_TIMEOUT);
    let spec = ServiceSpec::new(command).ready(readiness);
    let service = context.vm.services().start("conformance", spec).await?;
    let status = service.ready().await?;
    ensure(status.phase.is_ready(), || format!("it is {status:?}"))?;
    let log = service.logs().all().text().await?;
    ensure_eq("the log", log, "it is ready\n".to_owned())?;
    let status = service.stop().await?;
    ensure(status.phase.is_finished(), || format!("it is {status:?}"))?;
    service.remove().await?;
    let left = context.vm.services().list().await?;
    ensure(left.is_empty(), || format!("still known: {left:?}"))
}
