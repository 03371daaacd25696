//! Starts a VM from its configuration and waits until its agent answers.

use std::{
    any::Any,
    borrow::Cow,
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc, oneshot, watch},
    time::timeout,
};
use tracing::Instrument;
use vmcell_wire::reset::ResetKey;

use super::{
    End, Vm, VmBuilder, VmState, WhilePaused, clock, disk_switch,
    driver::{Driver, DriverRequest},
    facts::VmFacts,
    handle::{Control, Shared},
    own_quotas::OwnQuotas,
    pauser::{Change, PauseRequest, Pauser},
    restore::{Restoration, load_snapshot, restored_machine},
    snapshot,
};
use crate::{
    acceleration::AccelerationChoice,
    agent,
    attach::{
        AttachSocket, BaselineSlot, ChangeResult, ControlRequest, OwnedVm, VmName, VmSummary,
    },
    backend::{
        AGENT_PORT, AgentTransport, Launched, Machine, RejectedBackend, Vmm, VmmControl,
        launch_error,
    },
    console::Console,
    error::{BootFailure, Error},
    hex,
    link::LinkChoice,
    metrics::{DiskFile, MetricsHistory, Sampler},
    network::{Network, OwnNetwork},
    port::PublishedPorts,
    quotas::QuotaUsage,
    random::random_bytes,
    run_folder::{RunFolder, sweep},
    session::{Address, Link, LinkError, Route, Session},
    snapshot::{AgentRecord, GuestRecord, LoadedSnapshot, SnapshotOptions, SnapshotReport},
};

#[cfg(feature = "broker")]
use crate::network::NetworkHooks;

/// Resources of a backend, to be dropped when the VM has ended.
pub(super) type HeldResources = Vec<Box<dyn Any + Send>>;

pub(super) async fn start(builder: VmBuilder) -> Result<Vm, Error> {
    let boot_id: [u8; 16] = random_bytes()?;
    let secrets = Secrets {
        boot_id,
        reset_key: ResetKey::new(random_bytes()?),
    };
    let id = match &builder.id {
        Some(id) => id.clone(),
        None => hex::encode(&boot_id[..6]),
    };
    let name = VmName::new(&id).ok_or_else(|| {
        Error::Invalid(format!(
            "{id:?} cannot be the id of a VM: use 1 to 48 letters, digits, dots, hyphens and \
             underscores"
        ))
    })?;
    // Before any other work, because the id may be taken.
    let socket = match builder.listed {
        true => Some(AttachSocket::claim(&name).await?),
        false => None,
    };
    let span = tracing::info_span!("boot", vm = %id);
    boot(builder, secrets, id, socket).instrument(span).await
}

/// Random values that the host shares with the agent of this boot.
#[derive(Clone, Copy)]
pub(super) struct Secrets {
    pub(super) boot_id: [u8; 16],
    pub(super) reset_key: ResetKey,
}

async fn boot(
    builder: VmBuilder,
    secrets: Secrets,
    id: String,
    attach_socket: Option<AttachSocket>,
) -> Result<Vm, Error> {
    builder.validate()?;
    #[cfg(feature = "broker")]
    let broker = builder.broker.clone().broker().await?;
    let snapshot = load_snapshot(&builder).await?;
    let machine = machine_for(&builder, snapshot.as_deref(), secrets, id.clone())?;
    let keeps_disk = machine.root.is_kept();
    let image = machine.root.path().to_string_lossy().into_owned();
    let agent = machine.agent.clone();
    let acceleration = machine.acceleration;
    let (vcpus, memory_mib) = (machine.vcpus, machine.memory_mib);
    let quotas = machine.quotas;
    let start = StartKind::new(snapshot.as_deref(), &machine)?;
    let backend = match &snapshot {
        Some(snapshot) => Some(snapshot.guest.backend.as_str()),
        None => builder.backend.as_deref(),
    };
    let (backend, rejected_backends) = match backend {
        Some(name) if name != "auto" => {
            let backend = builder.backends.get(name, builder.host_compat).await?;
            (backend, vec![])
        }
        _ => builder.backends.choose(builder.host_compat).await?,
    };
    let name = backend.name().to_owned();
    let kernel = match &snapshot {
        Some(snapshot) => snapshot.guest.kernel.clone(),
        None => backend
            .kernel(machine.kernel.as_deref())
            .unwrap_or_default(),
    };
    let choice = acceleration;
    let acceleration = backend.is_vm().then_some(acceleration);
    // Launching writes files and spawns a process, which would block the runtime.
    let launching = tokio::task::spawn_blocking({
        let span = tracing::Span::current();
        move || {
            let _span = span.entered();
            sweep(&RunFolder::base());
            tracing::info_span!("launch").in_scope(|| backend.launch(machine))
        }
    });
    let launched = launching
        .await
        .unwrap_or_else(|error| Err(launch_error(&name, error)))?;
    quotas.check_enforced(&launched.enforced, &name)?;
    let own_quotas = OwnQuotas {
        quotas,
        layer: launched.layer_quota.clone(),
    };
    let console = Console::default();
    let link = launched.link.clone();
    let BootedVm {
        vmm,
        control,
        session,
        route,
        kept,
        warnings,
        disk,
    } = connect(launched, secrets, start, builder.boot_timeout, &console)
        .await
        .map_err(|error| agent::with_old_agent_reason(error, &agent))?;
    if let Some(rate) = quotas.link_rate {
        session.limit_rate(rate);
    }
    let session = Arc::new(session);
    let hooks = builder.network_hooks;
    #[cfg(feature = "broker")]
    let hooks = NetworkHooks {
        broker: broker.clone(),
        ..hooks
    };
    let network = OwnNetwork::start(builder.network, hooks, session.clone()).await?;
    let summary = VmSummary::new(
        image,
        vcpus,
        memory_mib,
        &name,
        acceleration.map(|choice| choice.acceleration),
        &warnings,
        keeps_disk,
    );
    let started_vm = StartedVm {
        facts: VmFacts {
            guest: GuestRecord {
                backend: name.clone(),
                acceleration: choice.acceleration,
                vcpus,
                memory_mib,
                kernel,
                agent: AgentRecord {
                    build: session.peer().build.clone(),
                    sha256: snapshot.as_ref().and_then(|it| it.guest.agent.sha256),
                },
                link: link.kind,
                boot_id: secrets.boot_id,
                reset_key: secrets.reset_key.to_bytes(),
                template: builder.template_key,
            },
            agent: snapshot.is_none().then_some(agent),
        },
        id,
        backend: name,
        rejected_backends,
        warnings,
        acceleration,
        link,
        quotas: own_quotas,
        console,
        stop_route: keeps_disk.then_some(route),
        network,
        disk,
    };
    let attach_socket = attach_socket.map(|socket| (socket, summary));
    let vm = start_driver((vmm, control), session, kept, started_vm, attach_socket)?;
    #[cfg(feature = "broker")]
    if let Some(broker) = broker {
        broker.install_trust(&vm).await?;
    }
    Ok(vm)
}

/// What a handle reports about its VM.
struct StartedVm {
    facts: VmFacts,
    id: String,
    backend: String,
    rejected_backends: Vec<RejectedBackend>,
    warnings: Vec<String>,
    acceleration: Option<AccelerationChoice>,
    link: LinkChoice,
    quotas: OwnQuotas,
    console: Console,
    /// Set for a VM whose disk is kept.
    stop_route: Option<Route>,
    network: OwnNetwork,
    /// The file that it writes to.
    disk: DiskFile,
}

/// Starts the driver of a VM whose agent has answered, and its attach server.
fn start_driver(
    (vmm, control): (Vmm, VmmControlOrRemedy),
    session: Arc<Session>,
    mut resources: HeldResources,
    started_vm: StartedVm,
    attach_socket: Option<(AttachSocket, VmSummary)>,
) -> Result<Vm, Error> {
    let confinement = vmm.confinement().to_vec();
    let (requests, receiver) = mpsc::unbounded_channel();
    let (state_sender, state) = watch::channel(VmState::Running);
    let killer = vmm.killer();
    let baseline = Arc::new(BaselineSlot::default());
    let ports = Arc::new(PublishedPorts::default());
    // Nobody sees an unlisted VM, and what is no VM has more processes than one.
    let has_metrics = attach_socket.is_some() && started_vm.acceleration.is_some();
    let metrics = has_metrics.then(|| {
        let disk = started_vm.disk.clone();
        let (sampler, metrics) = Sampler::start(vmm.processes(), disk, session.clone());
        resources.push(Box::new(sampler));
        metrics
    });
    let attach_server = attach_socket
        .map(|(socket, summary)| {
            let vm = DriverHandle {
                requests: requests.downgrade(),
                facts: started_vm.facts.clone(),
                network: started_vm.network.handle(),
                ports: Arc::downgrade(&ports),
                quotas: started_vm.quotas.clone(),
                metrics: metrics.clone(),
            };
            socket.serve(summary, baseline.clone(), session.clone(), vm)
        })
        .transpose()?;
    let StartedVm {
        facts,
        id,
        backend,
        rejected_backends,
        warnings,
        acceleration,
        link,
        quotas,
        console,
        stop_route,
        network,
        disk: _,
    } = started_vm;
    let keeps_disk = stop_route.is_some();
    let driver = Driver {
        vmm,
        resources,
        pauser: Pauser::new(control, backend.clone(), session.clone()),
        session: session.clone(),
        attach_server,
        requests: receiver,
        state: state_sender,
        stop_route,
    };
    tokio::spawn(driver.run());
    Ok(Vm::new(Shared {
        id,
        session,
        state,
        control: Control::Owner { requests, killer },
        keeps_disk,
        facts: Some(facts),
        backend,
        rejected_backends: Some(rejected_backends),
        confinement: Some(confinement),
        quotas: Some(quotas),
        warnings,
        acceleration,
        link,
        console,
        baseline,
        file_permits: Arc::new(Semaphore::new(Vm::FILE_PERMITS)),
        ports,
        network: Some(network),
        metrics,
        #[cfg(feature = "terminal")]
        terminals: crate::terminal::Followers::default(),
    }))
}

/// Forwards requests of clients to the driver.
#[derive(Clone)]
struct DriverHandle {
    requests: mpsc::WeakUnboundedSender<DriverRequest>,
    facts: VmFacts,
    network: Network,
    ports: Weak<PublishedPorts>,
    quotas: OwnQuotas,
    metrics: Option<Arc<MetricsHistory>>,
}

impl OwnedVm for DriverHandle {
    fn request(&self, request: ControlRequest) -> Option<ChangeResult> {
        let (reply, replied) = oneshot::channel();
        let change = |change| {
            let reply = Some(reply);
            DriverRequest::Pause(PauseRequest { change, reply })
        };
        let request = match request {
            ControlRequest::Attach
            | ControlRequest::Baseline
            | ControlRequest::Watch
            | ControlRequest::Snapshot
            | ControlRequest::Network
            | ControlRequest::NetworkLog
            | ControlRequest::SwitchDisk
            | ControlRequest::Metrics
            | ControlRequest::FlushMetrics
            | ControlRequest::Services
            | ControlRequest::Quotas => return None,
            ControlRequest::Stop => DriverRequest::Stop,
            ControlRequest::Kill => DriverRequest::Kill,
            ControlRequest::Pause => change(Change::Pause(WhilePaused::Wait)),
            ControlRequest::PauseAndRefuse => change(Change::Pause(WhilePaused::Fail)),
            ControlRequest::Resume => change(Change::Resume),
        };
        // Fails only if the driver has ended, and the VM with it.
        let _ = self.requests.upgrade()?.send(request);
        Some(replied)
    }

    fn network(&self) -> &Network {
        &self.network
    }

    fn ports(&self) -> Option<Arc<PublishedPorts>> {
        self.ports.upgrade()
    }

    fn quotas(&self) -> QuotaUsage {
        self.quotas.usage()
    }

    fn metrics(&self) -> Option<&MetricsHistory> {
        self.metrics.as_deref()
    }

    async fn switch_disk(&self, path: PathBuf) -> Result<Duration, Error> {
        let Some(requests) = self.requests.upgrade() else {
            return Err(Error::Gone(End::Died));
        };
        disk_switch::request(&requests, path).await
    }

    async fn snapshot(
        &self,
        path: PathBuf,
        options: SnapshotOptions,
    ) -> Result<SnapshotReport, Error> {
        let Some(requests) = self.requests.upgrade() else {
            return Err(Error::Gone(End::Died));
        };
        snapshot::take(&requests, Some(self.facts.clone()), path, options).await
    }
}

/// How long a VM whose link was closed during the boot may take to exit.
const EXIT_GRACE: Duration = Duration::from_secs(3);

/// A VM whose agent has answered.
struct BootedVm {
    vmm: Vmm,
    control: VmmControlOrRemedy,
    session: Session,
    route: Route,
    kept: HeldResources,
    warnings: Vec<String>,
    disk: DiskFile,
}

/// The control over a VMM, or what to do about it that there is none.
type VmmControlOrRemedy = Result<Box<dyn VmmControl>, &'static str>;

/// How a VM begins.
enum StartKind {
    /// It boots.
    Boot,
    /// It goes on from a snapshot.
    Restore(Restoration),
}

impl StartKind {
    fn new(snapshot: Option<&LoadedSnapshot>, machine: &Machine) -> Result<Self, Error> {
        Ok(match snapshot {
            None => Self::Boot,
            Some(snapshot) => Self::Restore(Restoration::new(snapshot, machine)?),
        })
    }

    /// Connects to the agent as soon as it listens. Returns the route for another link.
    async fn connect(
        &self,
        transport: AgentTransport,
        secrets: Secrets,
    ) -> Result<(Session, Route), LinkError> {
        match self {
            Self::Boot => {
                let (link, route) = open_link(transport, secrets.reset_key).await?;
                let session = Session::connect(link, Some(secrets.boot_id)).await?;
                clock::set(&session).await;
                Ok((session, route))
            }
            Self::Restore(restoration) => restoration.connect(transport, secrets).await,
        }
    }
}

/// Waits until the agent answers. Kills the VM if it does not.
async fn connect(
    launched: Launched,
    secrets: Secrets,
    start: StartKind,
    boot_timeout: Duration,
    console: &Console,
) -> Result<BootedVm, Error> {
    let Launched {
        mut vmm,
        transport,
        link: _,
        control,
        consoles,
        kept,
        warnings,
        disk,
        enforced: _,
        layer_quota: _,
    } = launched;
    // The VMM's own messages appear there too, next to the kernel's.
    let console_tasks: Vec<_> = consoles
        .into_iter()
        .map(|socket| console.read(socket))
        .collect::<Result<_, _>>()?;
    let hello = start.connect(transport, secrets);
    let hello = hello.instrument(tracing::info_span!("agent"));
    let connected = tokio::select! {
        connected = timeout(boot_timeout, hello) => connected,
        _ = vmm.exited() => Ok(Err(LinkError::Closed)),
    };
    let reason = match connected {
        Ok(Ok((session, route))) => {
            return Ok(BootedVm {
                vmm,
                control,
                session,
                route,
                kept,
                warnings,
                disk,
            });
        }
        Ok(Err(LinkError::Violation(_) | LinkError::WrongBoot | LinkError::Connect(_))) => {
            BootFailure::NotOurAgent
        }
        Ok(Err(LinkError::NotRenewed)) => BootFailure::NotRenewed,
        Ok(Err(
            LinkError::Closed | LinkError::Io(_) | LinkError::PeerNotReading | LinkError::Dropped,
        )) => BootFailure::Ended,
        Err(_) => BootFailure::Timeout(boot_timeout),
    };
    if reason == BootFailure::Ended {
        // The agent may have closed the link because of an error that it prints
        // only now.
        let _ = timeout(EXIT_GRACE, vmm.exited()).await;
    }
    // The exit of the VMM closes its sockets, so the tasks read all it printed.
    vmm.killer().kill();
    vmm.exited().await;
    for task in console_tasks {
        let _ = task.await;
    }
    let reason = match reason {
        BootFailure::Ended if vmm.has_used_cpu_time() => BootFailure::CpuTimeUsed,
        reason => reason,
    };
    Err(Error::Boot {
        reason,
        console: console.text(),
    })
}

/// Opens the link as soon as the agent listens. Returns it with the route for
/// another one.
async fn open_link(transport: AgentTransport, key: ResetKey) -> Result<(Link, Route), LinkError> {
    let address = match transport {
        AgentTransport::Serial(port) => {
            port.set_nonblocking(true)?;
            let socket = port.try_clone()?;
            let link = Link::serial(UnixStream::from_std(port)?, key);
            return Ok((link, Route::Serial { socket, key }));
        }
        AgentTransport::Hybrid { path, ready } => {
            ready.set_nonblocking(true)?;
            UnixListener::from_std(ready)?.accept().await?;
            let port = AGENT_PORT;
            Address::Hybrid { path, port }
        }
        AgentTransport::Vsock { cid, ready } => {
            ready.accept_from(cid).await?;
            let port = AGENT_PORT;
            Address::Vsock { cid, port }
        }
    };
    let link = Link::dial(address.clone()).await?;
    Ok((link, Route::Address(address)))
}

/// Returns the description of the machine for the backend.
fn machine_for(
    builder: &VmBuilder,
    snapshot: Option<&LoadedSnapshot>,
    secrets: Secrets,
    id: String,
) -> Result<Machine, Error> {
    if let Some(snapshot) = snapshot {
        return restored_machine(builder, snapshot, secrets, id);
    }
    let acceleration = match builder.acceleration {
        Some(acceleration) => AccelerationChoice::requested(acceleration),
        None => AccelerationChoice::detect(),
    };
    let agent = match &builder.agent {
        Some(path) => Cow::Owned(agent::read(path)?),
        None => Cow::Borrowed(agent::EMBEDDED),
    };
    Ok(Machine {
        id,
        root: builder.root()?,
        disk_size: builder.disk_size(),
        vcpus: builder.vcpus,
        memory_mib: builder.memory_mib,
        hostname: builder
            .hostname
            .clone()
            .unwrap_or_else(|| "vmcell".to_owned()),
        acceleration,
        link: builder.link,
        confinement: builder.confinement,
        quotas: builder.quotas,
        randomise_addresses: builder.randomise_addresses,
        kernel: builder.kernel.clone(),
        kernel_arguments: builder.kernel_arguments.clone(),
        agent,
        boot_id: secrets.boot_id,
        reset_key: secrets.reset_key.to_bytes(),
        scratch_folder: builder.scratch_folder.clone(),
        shares_memory: builder.template_key.is_some(),
        saved: None,
        layer: None,
        #[cfg(test)]
        alter_boot_file: None,
    })
}
