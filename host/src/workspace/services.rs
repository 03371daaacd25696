//! The services of a workspace's VM: how many there are, and their ports, which are
//! published again when the workspace is resumed.

use std::sync::Arc;

use tokio::{sync::Semaphore, task::JoinSet};

use super::{WorkspaceInfo, WorkspaceState, Workspaces, folder::Folder};
use crate::{
    Vm,
    error::Error,
    port::{PortError, PortMapping},
    service::{ServiceCounts, ServicePort},
    vm::count_services,
};

/// How many VMs are asked at once.
const MAX_CONCURRENT_QUERIES: usize = 64;

/// Asks the VMs that run how many services they have.
pub(super) async fn add_counts(workspaces: &Workspaces, list: &mut [WorkspaceInfo]) {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_QUERIES));
    let mut counting = JoinSet::new();
    for (index, info) in list.iter().enumerate() {
        if info.state == WorkspaceState::Running {
            let (id, permits) = (info.id.clone(), permits.clone());
            let folder = workspaces.of(&id);
            counting.spawn(async move {
                // The semaphore is never closed.
                let _permit = permits.acquire().await;
                (index, count(&folder, &id).await)
            });
        }
    }
    while let Some(counted) = counting.join_next().await {
        if let Ok((index, counts)) = counted
            && let Some(info) = list.get_mut(index)
        {
            info.services = counts;
        }
    }
}

/// Asks the VM of a workspace how many services it has, and never another one with the same
/// id, such as that of a workspace below another root.
pub(super) async fn count(folder: &Folder, id: &str) -> Option<ServiceCounts> {
    count_services(id, |disk| folder.contains_layer(disk)).await
}

/// Publishes ports of services that go on after a pause.
pub(super) async fn publish_again(vm: &Vm, ports: &[ServicePort]) {
    for port in ports {
        if let Err(error) = publish(vm, port).await {
            tracing::warn!(%error, service = port.service, "cannot publish a port again");
        }
    }
}

async fn publish(vm: &Vm, port: &ServicePort) -> Result<(), Error> {
    let opened = match vm.publish_for(&port.service, &[port.mapping()]).await {
        // Another program has it now.
        Err(Error::Port(PortError::HostPortTaken { .. })) => {
            let any = PortMapping::from(port.guest);
            vm.publish_for(&port.service, &[any]).await?
        }
        opened => opened?,
    };
    opened.close_when_finished(vm, &port.service).await
}
