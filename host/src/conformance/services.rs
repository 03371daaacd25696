//! Processes that the guest looks after.

use super::{
    scene::Scene,
    unmet::{Seen, demand, same},
};
use crate::{
    process::Command,
    service::{Probe, ServiceSpec},
};

pub(super) async fn service(scene: Scene) -> Seen {
    let command = Command::shell("echo it is ready; exec sleep 100000");
    let spec = ServiceSpec::new(command).ready(Probe::log("ready"));
    let service = scene.vm.services().start("conformance", spec).await?;
    let status = service.ready().await?;
    demand(status.phase.is_ready(), || format!("it is {status:?}"))?;
    let log = service.logs().all().text().await?;
    same("the log", log, "it is ready\n".to_owned())?;
    let status = service.stop().await?;
    demand(status.phase.is_finished(), || format!("it is {status:?}"))?;
    service.remove().await?;
    let left = scene.vm.services().list().await?;
    demand(left.is_empty(), || format!("still known: {left:?}"))
}
