//! From a description to a VM whose agent has answered.

use std::{
    fs::File,
    io::{Seek, Write},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::fs::{MemfdFlags, memfd_create};
use tokio::{
    net::UnixStream,
    sync::{Semaphore, mpsc, watch},
    time::timeout,
};
use tracing::Instrument;
use vmcell_wire::{boot::Boot, reset::ResetKey};

use super::{
    Vm, VmBuilder, VmState,
    builder::Root,
    driver::{Driver, Order},
    handle::{Control, Shared},
};
use crate::{
    acceleration::AccelerationChoice,
    agent,
    backend::{Backend, Launched, Machine, qemu::Qemu},
    console::Console,
    door::{Door, Errand, Keepsake, Name, Plate},
    error::{BootFailure, Error},
    initramfs::initramfs,
    locate,
    overlay::Overlay,
    random::random_bytes,
    session::{Link, Lost, Session},
    time_stamp,
    vmm::Vmm,
};

pub(super) async fn start(builder: VmBuilder) -> Result<Vm, Error> {
    let boot_id: [u8; 16] = random_bytes()?;
    let secrets = Secrets {
        boot_id,
        reset_key: ResetKey::new(random_bytes()?),
    };
    let id = match &builder.id {
        Some(id) => id.clone(),
        None => boot_id[..6]
            .iter()
            .fold(String::new(), |id, byte| format!("{id}{byte:02x}")),
    };
    let name = Name::ours(&id).ok_or_else(|| {
        Error::Invalid(format!(
            "{id:?} cannot be the id of a VM: use 1 to 48 letters, digits, dots, hyphens and \
             underscores"
        ))
    })?;
    // Before any work: an id that is taken is no good.
    let door = builder.listed.then(|| Door::claim(&name)).transpose()?;
    let span = tracing::info_span!("boot", vm = %id);
    boot(builder, secrets, id, door).instrument(span).await
}

/// What the host and the agent know of each other.
#[derive(Clone, Copy)]
struct Secrets {
    boot_id: [u8; 16],
    reset_key: ResetKey,
}

async fn boot(
    builder: VmBuilder,
    secrets: Secrets,
    id: String,
    door: Option<Door>,
) -> Result<Vm, Error> {
    let backend = Qemu {
        program: locate::qemu(builder.qemu.as_deref())?,
    };
    let acceleration = match builder.acceleration {
        Some(acceleration) => AccelerationChoice::requested(acceleration),
        None => AccelerationChoice::detect(),
    };
    let boot_timeout = builder.boot_timeout;
    builder.validate()?;
    let image = builder.root()?.path().to_string_lossy().into_owned();
    let (vcpus, memory_mib) = (builder.vcpus, builder.memory_mib);
    // Files are written and a process is made: not for a thread of the runtime.
    let launching = tokio::task::spawn_blocking({
        let id = id.clone();
        let span = tracing::Span::current();
        move || {
            let _span = span.entered();
            let machine = prepare(&builder, secrets, id, acceleration)?;
            let name = backend.name();
            let launched = tracing::info_span!("launch").in_scope(|| backend.launch(machine))?;
            Ok((name, launched))
        }
    });
    let (backend, launched) = launching.await.unwrap_or(Err(Error::Busy(
        "the runtime is shutting down: no VM can be started",
    )))?;
    let console = Console::default();
    let (vmm, session) = connect(launched, secrets, boot_timeout, &console).await?;
    let plate = Plate::new(image, vcpus, memory_mib, backend, acceleration.acceleration);
    let about = About {
        id,
        backend,
        acceleration,
        console,
    };
    hand_over(vmm, session, about, door.map(|door| (door, plate)))
}

/// What a handle can tell of its VM.
struct About {
    id: String,
    backend: &'static str,
    acceleration: AccelerationChoice,
    console: Console,
}

/// Gives a VM whose agent has answered to its driver, and opens its door.
fn hand_over(
    vmm: Vmm,
    session: Session,
    about: About,
    door: Option<(Door, Plate)>,
) -> Result<Vm, Error> {
    let session = Arc::new(session);
    let (orders, ordered) = mpsc::unbounded_channel();
    let (state_sender, state) = watch::channel(VmState::Running);
    let killer = vmm.killer();
    let baseline = Arc::new(Keepsake::default());
    let door = door
        .map(|(door, plate)| {
            let orders = orders.downgrade();
            let state = state.clone();
            door.open(plate, baseline.clone(), session.clone(), move |errand| {
                carry_out(errand, orders.clone(), state.clone())
            })
        })
        .transpose()?;
    let driver = Driver {
        vmm,
        session: session.clone(),
        door,
        orders: ordered,
        state: state_sender,
    };
    tokio::spawn(driver.run());
    let About {
        id,
        backend,
        acceleration,
        console,
    } = about;
    Ok(Vm::new(Shared {
        id,
        session,
        state,
        control: Control::Owner { orders, killer },
        backend: backend.to_owned(),
        acceleration,
        console,
        baseline,
        file_permits: Arc::new(Semaphore::new(Vm::FILE_PERMITS)),
        ports: crate::port::PublishedPorts::default(),
        #[cfg(feature = "terminal")]
        terminals: crate::terminal::KnownTerminals::default(),
    }))
}

/// Does what a visitor asks of the VM itself.
async fn carry_out(
    errand: Errand,
    orders: mpsc::WeakUnboundedSender<Order>,
    mut state: watch::Receiver<VmState>,
) {
    let order = match errand {
        Errand::Attach | Errand::Baseline => return,
        Errand::Stop => Order::Stop,
        Errand::Kill => Order::Kill,
    };
    if let Some(orders) = orders.upgrade() {
        // It fails only if the driver has ended, and the VM with it.
        let _ = orders.send(order);
    }
    let _ = state
        .wait_for(|state| matches!(state, VmState::Ended(_)))
        .await;
}

/// Waits for the agent. A VM in which none answers is ended.
async fn connect(
    launched: Launched,
    secrets: Secrets,
    boot_timeout: Duration,
    console: &Console,
) -> Result<(Vmm, Session), Error> {
    let Launched {
        mut vmm,
        link,
        console: console_socket,
        complaints,
    } = launched;
    // The VMM's own complaints stand where a reader would look for them.
    let reading = [console.read(console_socket)?, console.read(complaints)?];
    let link = link
        .set_nonblocking(true)
        .and_then(|()| UnixStream::from_std(link))
        .map_err(Error::host("use the link"))?;

    let link = Link::port(link, secrets.reset_key);
    let hello =
        Session::connect(link, Some(secrets.boot_id)).instrument(tracing::info_span!("agent"));
    let connected = tokio::select! {
        connected = timeout(boot_timeout, hello) => connected,
        _ = vmm.exited() => Ok(Err(Lost::Closed)),
    };
    let reason = match connected {
        Ok(Ok(session)) => return Ok((vmm, session)),
        Ok(Err(Lost::Violation(_) | Lost::WrongBoot)) => BootFailure::NotOurAgent,
        Ok(Err(Lost::Closed | Lost::Io(_) | Lost::Deaf | Lost::Dropped)) => BootFailure::Ended,
        Err(_) => BootFailure::Timeout(boot_timeout),
    };
    // The end of the VMM closes its sockets, so all it printed will be there.
    vmm.killer().kill();
    vmm.exited().await;
    for task in reading {
        let _ = task.await;
    }
    Err(Error::Boot {
        reason,
        console: console.text(),
    })
}

/// Gathers what the VM is made of.
fn prepare(
    builder: &VmBuilder,
    secrets: Secrets,
    id: String,
    acceleration: AccelerationChoice,
) -> Result<Machine, Error> {
    let _span = tracing::info_span!("prepare").entered();
    let kernel = locate::kernel(builder.kernel.as_deref())?;
    let disk = match builder.root()? {
        Root::Image(image) => Overlay::create(image, &builder.scratch_folder)?,
        #[cfg(feature = "disk")]
        Root::Disk(disk) => Overlay::open(disk, &builder.backing_folders)?,
    };
    let wall_time = SystemTime::now().duration_since(UNIX_EPOCH);
    let boot_file = Boot {
        boot_id: secrets.boot_id,
        reset_key: secrets.reset_key.to_bytes(),
        seed: random_bytes()?,
        wall_time_ns: wall_time.map_or(0, |time| time.as_nanos().try_into().unwrap_or(0)),
        hostname: &builder.hostname,
        root_device: "/dev/vda",
    };
    let boot_file = boot_file
        .encode()
        .map_err(|error| Error::Invalid(error.to_string()))?;
    let archive = match &builder.agent {
        Some(path) => initramfs(&agent::read(path)?, &boot_file),
        None => initramfs(agent::EMBEDDED, &boot_file),
    };
    Ok(Machine {
        id,
        kernel,
        kernel_arguments: builder.kernel_arguments.clone(),
        initramfs: file_in_memory(&archive).map_err(Error::host("make the initramfs"))?,
        disk,
        vcpus: builder.vcpus,
        memory_mib: builder.memory_mib,
        acceleration: acceleration.acceleration,
        randomise_addresses: builder.randomise_addresses,
        time_stamp_khz: time_stamp::rate_khz(),
    })
}

fn file_in_memory(contents: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("vmcell-initramfs", MemfdFlags::CLOEXEC)?);
    file.write_all(contents)?;
    file.rewind()?;
    Ok(file)
}
