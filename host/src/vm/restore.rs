//! Starts a VM from a snapshot: finds out what it needs, and gives it an identity of its
//! own.

use std::{borrow::Cow, sync::Arc, time::Duration};

use tokio::{
    net::UnixStream,
    time::{sleep, timeout},
};
use vmcell_wire::{Renew, reset::ResetKey};

use super::{VmBuilder, clock, start::Secrets};
use crate::{
    acceleration::{Acceleration, AccelerationChoice},
    backend::{AGENT_PORT, AgentTransport, Machine, PartKind, Root},
    error::Error,
    hex,
    on_thread::on_thread,
    random::random_bytes,
    session::{Address, ConnectError, Link, LinkError, Route, Session},
    snapshot::{LoadedSnapshot, SnapshotError},
};

/// What a VM is told after it was restored.
pub(super) struct Restoration {
    /// The secrets that it has until it gets its own.
    saved: Secrets,
    hostname: String,
    seed: [u8; 32],
}

impl Restoration {
    pub(super) fn new(snapshot: &LoadedSnapshot, machine: &Machine) -> Result<Self, Error> {
        Ok(Self {
            saved: Secrets {
                boot_id: snapshot.guest.boot_id,
                reset_key: ResetKey::new(snapshot.guest.reset_key),
            },
            hostname: machine.hostname.clone(),
            seed: random_bytes()?,
        })
    }

    /// Connects to the agent, and gives it these secrets. Returns the route for another
    /// link.
    pub(super) async fn connect(
        &self,
        transport: AgentTransport,
        secrets: Secrets,
    ) -> Result<(Session, Route), LinkError> {
        let (link, route) = self.open_link(transport, secrets.reset_key).await?;
        let renew = Renew {
            boot_id: secrets.boot_id,
            reset_key: secrets.reset_key.to_bytes(),
            seed: self.seed,
            wall_time_ns: clock::wall_time_ns().unwrap_or(0),
            hostname: &self.hostname,
        };
        let session = Session::restore(link, self.saved.boot_id, &renew).await?;
        Ok((session, route))
    }

    /// Opens a link to an agent that listens already. Returns it with the route for another
    /// one, on which the agent has this key.
    async fn open_link(
        &self,
        transport: AgentTransport,
        key: ResetKey,
    ) -> Result<(Link, Route), LinkError> {
        match transport {
            AgentTransport::Serial(port) => {
                port.set_nonblocking(true)?;
                let socket = port.try_clone()?;
                let link = Link::used_serial(UnixStream::from_std(port)?, self.saved.reset_key);
                Ok((link, Route::Serial { socket, key }))
            }
            AgentTransport::Hybrid { path, .. } => {
                let port = AGENT_PORT;
                let address = Address::Hybrid { path, port };
                let link = dial_restored(&address).await?;
                Ok((link, Route::Address(address)))
            }
            AgentTransport::Vsock { .. } => Err(LinkError::NotRenewed),
        }
    }
}

/// How long the first attempt to connect to a restored guest may take. Later ones may take
/// longer.
const FIRST_ATTEMPT: Duration = Duration::from_millis(500);

const MAX_ATTEMPT: Duration = Duration::from_secs(8);

/// How long to wait after the guest has refused the first attempt. Later ones wait longer.
const FIRST_DELAY: Duration = Duration::from_millis(10);

/// How often the guest may refuse.
const MAX_REFUSALS: u32 = 6;

/// Connects to the agent of a VM that was just restored.
///
/// The new VMM can choose the port of a connection that the guest had when it was saved, and
/// has not closed yet. The guest ignores or refuses the new connection then. The next one
/// has another port.
async fn dial_restored(address: &Address) -> Result<Link, LinkError> {
    let mut limit = FIRST_ATTEMPT;
    let mut refusals = 0;
    loop {
        match timeout(limit, Link::dial(address.clone())).await {
            Ok(Err(LinkError::Connect(ConnectError::Refused))) if refusals < MAX_REFUSALS => {
                sleep(FIRST_DELAY * 2_u32.pow(refusals)).await;
                refusals += 1;
            }
            // The caller limits the time of all attempts.
            Err(_) | Ok(Err(LinkError::Connect(ConnectError::TimedOut))) => {
                limit = (limit * 2).min(MAX_ATTEMPT);
            }
            Ok(dialled) => return dialled,
        }
    }
}

/// Loads and checks the snapshot to restore, if there is one.
pub(super) async fn load_snapshot(
    builder: &VmBuilder,
) -> Result<Option<Arc<LoadedSnapshot>>, Error> {
    if let Some(template) = &builder.template {
        return Ok(Some(template.clone()));
    }
    let Some(path) = builder.snapshot.clone() else {
        return Ok(None);
    };
    let image = builder.image.clone();
    let loaded = on_thread("load the snapshot", move || {
        Ok(LoadedSnapshot::open(&path, image.as_deref())?)
    });
    Ok(Some(Arc::new(loaded.await?)))
}

/// Returns the description of the machine of a snapshot.
pub(super) fn restored_machine(
    builder: &VmBuilder,
    snapshot: &LoadedSnapshot,
    secrets: Secrets,
    id: String,
) -> Result<Machine, Error> {
    let LoadedSnapshot { guest, machine, .. } = snapshot;
    let has_disk = machine.has(PartKind::Layer) || machine.has(PartKind::Disk);
    match (has_disk, builder.disk.is_some()) {
        (true, true) => {
            return Err(Error::Invalid(
                "the snapshot has a disk of its own: set no disk".to_owned(),
            ));
        }
        (false, false) => {
            return Err(Error::Invalid(
                "the snapshot has no disk: set the one that the VM had".to_owned(),
            ));
        }
        _ => {}
    }
    if builder.directory.is_some() {
        return Err(Error::Invalid(
            "a snapshot cannot be restored on a directory".to_owned(),
        ));
    }
    let here = match builder.acceleration {
        // As for a VM that boots, the VMM reports if it is not there.
        Some(Acceleration::Kvm) => Acceleration::Kvm,
        _ => AccelerationChoice::detect().acceleration,
    };
    if (guest.acceleration, here) == (Acceleration::Kvm, Acceleration::Tcg) {
        return Err(Error::Snapshot(SnapshotError::Differs {
            what: "the acceleration",
            saved: guest.acceleration.to_string(),
            here: here.to_string(),
        }));
    }
    let image = machine.image.clone().or_else(|| builder.snapshot.clone());
    let root = builder.disk_root();
    let own_name = || format!("vmcell-{}", hex::encode(&secrets.boot_id[..6]));
    Ok(Machine {
        id,
        root: root.unwrap_or(Root::Image(image.unwrap_or_default())),
        disk_size: None,
        vcpus: guest.vcpus,
        memory_mib: guest.memory_mib,
        hostname: builder.hostname.clone().unwrap_or_else(own_name),
        acceleration: AccelerationChoice::requested(guest.acceleration),
        link: Some(guest.link),
        confinement: builder.confinement,
        quotas: builder.quotas,
        randomise_addresses: false,
        kernel: None,
        kernel_arguments: String::new(),
        agent: Cow::Borrowed(&[]),
        boot_id: secrets.boot_id,
        reset_key: secrets.reset_key.to_bytes(),
        scratch_folder: builder.scratch_folder.clone(),
        shares_memory: false,
        saved: Some(machine.clone()),
        layer: builder.layer.clone(),
        #[cfg(test)]
        alter_boot_file: None,
    })
}
