use super::{owner_request::PortsOfOwner, published::ServicePorts};
use crate::{error::Error, vm::Vm};

/// Published ports of a service that is about to be started. They are closed when this is
/// dropped.
#[derive(Debug)]
pub(crate) enum NewPorts {
    /// Of this program.
    Ours(ServicePorts),
    /// Of the program that owns the VM.
    Owners(PortsOfOwner),
}

impl NewPorts {
    /// Closes them. Those of this program are free when this returns.
    pub(super) async fn close(self) {
        if let Self::Ours(ports) = self {
            ports.close().await;
        }
    }

    /// Keeps them open until the service finishes.
    pub(crate) async fn close_when_finished(self, vm: &Vm, service: &str) -> Result<(), Error> {
        match self {
            Self::Ours(ports) => {
                ports.close_when_finished(vm.shared_session(), service.to_owned());
                Ok(())
            }
            Self::Owners(ports) => {
                let kept = ports.close_when_finished().await;
                kept.map_err(Error::host("ask the program that owns the VM"))
            }
        }
    }
}
