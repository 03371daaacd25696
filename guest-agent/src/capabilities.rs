use vmcell_wire::Capabilities;

use crate::agent::Agent;

impl Agent {
    /// Returns what the agent can do: what it was compiled with, less what the
    /// program does not let it do.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let mut missing = Capabilities::NONE;
        for (is_there, capability) in [
            (cfg!(feature = "files"), Capabilities::FILES),
            (cfg!(feature = "terminals"), Capabilities::TERMINALS),
            (cfg!(feature = "terminals"), Capabilities::TERMINAL_READS),
            (cfg!(feature = "services"), Capabilities::SERVICES),
            (cfg!(feature = "ports"), Capabilities::PORTS),
            (self.power_control.is_some(), Capabilities::POWER_OFF),
            (self.has_clock, Capabilities::CLOCK),
            (
                cfg!(feature = "network") && self.has_network,
                Capabilities::NETWORK,
            ),
            (
                cfg!(feature = "network") && self.has_network,
                Capabilities::TRUST_STORE,
            ),
            (self.has_snapshots(), Capabilities::SNAPSHOTS),
            (
                self.tasks.processes.has_cgroups(),
                Capabilities::PROCESS_COUNT,
            ),
        ] {
            if !is_there {
                missing = missing | capability;
            }
        }
        Capabilities::ALL.difference(missing)
    }
}
