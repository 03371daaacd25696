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
    sync::{mpsc, watch},
    time::timeout,
};
use tracing::Instrument;
use vmcell_wire::boot::Boot;

use super::{Vm, VmBuilder, VmState, driver::Driver, handle::Shared};
use crate::{
    acceleration::AccelerationChoice,
    agent,
    backend::{Backend, Launched, Machine, qemu::Qemu},
    console::Console,
    error::{BootFailure, Error},
    initramfs::initramfs,
    locate,
    overlay::Overlay,
    random::random_bytes,
    session::{Lost, Session},
    time_stamp,
    vmm::Vmm,
};

pub(super) async fn start(builder: VmBuilder) -> Result<Vm, Error> {
    let boot_id: [u8; 16] = random_bytes()?;
    let id: String = boot_id[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let span = tracing::info_span!("boot", vm = %id);
    boot(builder, boot_id, id).instrument(span).await
}

async fn boot(builder: VmBuilder, boot_id: [u8; 16], id: String) -> Result<Vm, Error> {
    let backend = Qemu {
        program: locate::qemu(builder.qemu.as_deref())?,
    };
    let acceleration = match builder.acceleration {
        Some(acceleration) => AccelerationChoice::requested(acceleration),
        None => AccelerationChoice::detect(),
    };
    let boot_timeout = builder.boot_timeout;
    // Files are written and a process is made: not for a thread of the runtime.
    let launching = tokio::task::spawn_blocking({
        let id = id.clone();
        let span = tracing::Span::current();
        move || {
            let _span = span.entered();
            let machine = prepare(&builder, boot_id, id, acceleration)?;
            let name = backend.name();
            let launched = tracing::info_span!("launch").in_scope(|| backend.launch(machine))?;
            Ok((name, launched))
        }
    });
    let (backend, launched) = launching.await.unwrap_or(Err(Error::Busy(
        "the runtime is shutting down: no VM can be started",
    )))?;
    let console = Console::default();
    let (vmm, session) = connect(launched, boot_id, boot_timeout, &console).await?;
    let about = About {
        id,
        backend,
        acceleration,
        console,
    };
    Ok(hand_over(vmm, session, about))
}

/// What a handle can tell of its VM.
struct About {
    id: String,
    backend: &'static str,
    acceleration: AccelerationChoice,
    console: Console,
}

/// Gives a VM whose agent has answered to its driver.
fn hand_over(vmm: Vmm, session: Session, about: About) -> Vm {
    let session = Arc::new(session);
    let (orders, ordered) = mpsc::unbounded_channel();
    let (state_sender, state) = watch::channel(VmState::Running);
    let killer = vmm.killer();
    let driver = Driver {
        vmm,
        session: session.clone(),
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
    Vm::new(Shared {
        id,
        session,
        orders,
        state,
        killer,
        backend,
        acceleration,
        console,
    })
}

/// Waits for the agent. A VM in which none answers is ended.
async fn connect(
    launched: Launched,
    boot_id: [u8; 16],
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

    let hello = Session::connect(link, boot_id).instrument(tracing::info_span!("agent"));
    let connected = tokio::select! {
        connected = timeout(boot_timeout, hello) => connected,
        _ = vmm.exited() => Ok(Err(Lost::Closed)),
    };
    let reason = match connected {
        Ok(Ok(session)) => return Ok((vmm, session)),
        Ok(Err(Lost::Violation(_) | Lost::WrongBoot)) => BootFailure::NotOurAgent,
        Ok(Err(Lost::Closed | Lost::Io(_) | Lost::Deaf)) => BootFailure::Ended,
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
    boot_id: [u8; 16],
    id: String,
    acceleration: AccelerationChoice,
) -> Result<Machine, Error> {
    let _span = tracing::info_span!("prepare").entered();
    let image = builder.validate()?;
    let kernel = locate::kernel(builder.kernel.as_deref())?;
    let disk = Overlay::create(image, &builder.scratch_folder)?;
    let wall_time = SystemTime::now().duration_since(UNIX_EPOCH);
    let boot_file = Boot {
        boot_id,
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

#[cfg(test)]
mod tests;
