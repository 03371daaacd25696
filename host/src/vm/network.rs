use std::time::SystemTime;

use super::{Vm, attached, handle::Control};
use crate::{
    error::Error,
    network::{Network, NetworkLog, NetworkStatus, OwnNetwork},
};

impl Vm {
    /// Returns the network of this VM: see [`network`](crate::network).
    ///
    /// # Errors
    /// [`Error::NotOwner`] on an [attached](Self::attach) handle.
    pub fn network(&self) -> Result<Network, Error> {
        let network = self.shared.network.as_ref();
        network.map(OwnNetwork::handle).ok_or(Error::NotOwner {
            doing: "use its network",
        })
    }

    /// Returns the network policy of this VM, and how much its programs use the network.
    ///
    /// # Errors
    /// [`Error::Host`] if the program that owns the VM does not answer.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn network_status(&self) -> Result<NetworkStatus, Error> {
        match (&self.shared.network, &self.shared.control) {
            (None, Control::Attached(name)) => attached::network_status(name).await,
            _ => Ok(self.network()?.status()),
        }
    }

    /// Returns what programs of this VM have wanted of the network, and what they want from
    /// now on.
    ///
    /// # Errors
    /// [`Error::Host`] if the program that owns the VM does not answer.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn network_log(&self) -> Result<NetworkLog, Error> {
        match (&self.shared.network, &self.shared.control) {
            (None, Control::Attached(name)) => attached::network_log(name).await,
            _ => Ok(self.network()?.log()),
        }
    }

    pub(crate) fn network_denials_since(&self, time: SystemTime) -> Vec<String> {
        let network = self.shared.network.as_ref();
        network.map_or_else(Vec::new, |network| network.denials_since(time))
    }
}
