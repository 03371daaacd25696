//! Boots the guest in ordered stages, and halts it.
//!
//! The initramfs contains the agent as `/init` and the boot file. The disk is
//! mounted over it as the root. The initramfs stays beneath, with nothing in it
//! but these files.

mod identity;
mod mounts;
pub mod namespaces;
mod ports;
mod shared_memory_limits;
mod stages;
mod vsock;

use core::fmt;

use alloc::{rc::Rc, string::String, vec::Vec};
use rustix::{
    fd::OwnedFd,
    fs::{Access, access},
    io::Errno,
    mount::{MountFlags, mount_remount},
    system::{RebootCommand, reboot},
};
use vmcell_wire::{
    WireError,
    boot::{Boot, BootFileError, BootLink},
};

use self::{
    identity::{BootId, GuestIdentity},
    shared_memory_limits::SharedMemoryLimits,
};
use crate::{
    agent::Agent,
    builder::AgentBuilder,
    children::Reaping,
    console::Console,
    power::{PowerControl, Signalled},
    program, sys,
};

/// The result of a boot, for the agent.
pub struct Booted {
    /// Identifies this boot.
    pub boot_id: [u8; 16],
    /// The key with which a reset of a port begins.
    pub reset_key: [u8; 16],
    /// The open ports to the host.
    pub ports: Vec<OwnedFd>,
    /// The socket on which the host connects, if it does not use ports.
    pub listener: Option<OwnedFd>,
    /// Whether the agent may set the clock: it is not the host's.
    pub has_clock: bool,
    /// Whether the agent may take the connections that programs make to other machines:
    /// the machine has no network of its own.
    pub has_network: bool,
    /// Whether cgroups are mounted at [`CGROUPS`].
    pub has_cgroups: bool,
    /// The disk of the root.
    pub root_disk: RootDisk,
    /// The kernel's random number generator, if it is the guest's own. Then the agent
    /// can give the guest a new identity.
    pub random: Option<OwnedFd>,
    /// The output for error messages.
    pub console: Console,
}

impl Booted {
    /// Returns a builder with everything that the boot has found: for a PID 1
    /// that reaps all children and hands them over.
    pub fn agent_builder(self) -> AgentBuilder<'static> {
        let console = Rc::new(self.console);
        let identity = self.random.map(|random| GuestIdentity {
            random,
            boot_id: BootId::open(),
            console: Rc::clone(&console),
        });
        let mut builder = Agent::builder()
            .boot_id(self.boot_id)
            .may_set_clock(self.has_clock)
            .may_capture_network(self.has_network)
            .reaping(Reaping::HandedOver)
            .power_control(GuestPower(self.root_disk))
            .write_back(self.root_disk == RootDisk::Persistent)
            .on_diagnostic(move |diagnostic| console.error(format_args!("{diagnostic}")));
        if self.has_cgroups {
            builder = builder.cgroups(CGROUPS);
        }
        if let Some(identity) = identity {
            builder = builder.identity_control(identity);
        }
        if let Some(listener) = self.listener {
            builder = builder.listener(listener);
        }
        for port in self.ports {
            builder = builder.port(port, self.reset_key);
        }
        builder
    }
}

/// The power-off of a guest by its PID 1, which ends all its processes.
struct GuestPower(RootDisk);

impl PowerControl for GuestPower {
    fn terminate(&mut self) -> Signalled {
        sys::signal_all_processes(libc::SIGTERM);
        Signalled::All
    }

    fn kill(&mut self) {
        sys::signal_all_processes(libc::SIGKILL);
    }

    fn have_others_ended(&mut self) -> bool {
        !program::has_children()
    }

    fn make_disk_clean(&mut self) -> Result<(), Errno> {
        match self.0 {
            RootDisk::None => Ok(()),
            RootDisk::Scratch | RootDisk::Persistent => make_root_clean(),
        }
    }
}

/// The disk of the guest's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootDisk {
    /// The root has no disk of its own: there is nothing to write back.
    None,
    /// A disk that is deleted with the VM.
    Scratch,
    /// A disk that outlives the VM.
    Persistent,
}

pub use crate::sys::CGROUPS;

/// Returns whether this process is PID 1. Its workers are not.
pub fn is_init() -> bool {
    rustix::process::getpid().is_init()
}

/// A failed boot: the stage and the cause.
#[derive(Debug)]
pub struct BootError {
    stage: &'static str,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Kernel(Errno),
    BootFile(BootFileError),
    Description(WireError),
    RootDevice(String, Errno),
    NoPorts,
    NoNamespaces(Errno),
    NoIdMappedMount(Errno),
    NoOverlay(Errno),
}

impl core::error::Error for BootError {}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boot failed: {}: ", self.stage)?;
        match &self.cause {
            Cause::Kernel(errno) => write!(f, "{errno}"),
            Cause::BootFile(error) => write!(f, "{error}"),
            Cause::Description(error) => write!(f, "{error}"),
            Cause::RootDevice(device, errno) => {
                write!(f, "{device} cannot be mounted as ext4: {errno}")
            }
            Cause::NoPorts => f.write_str("the VM has no virtio-serial port to the host"),
            Cause::NoNamespaces(errno) => write!(
                f,
                "{errno}: allow user namespaces (sysctl user.max_user_namespaces, \
                 kernel.unprivileged_userns_clone), or use a backend that is a VM"
            ),
            Cause::NoIdMappedMount(errno) => write!(
                f,
                "{errno}: it takes Linux 5.19 or later, and files on a file system that can \
                 be mounted so, such as ext4, xfs or btrfs: set XDG_CACHE_HOME to a folder \
                 there, or run as an ordinary user"
            ),
            Cause::NoOverlay(errno) => write!(
                f,
                "{errno}: it takes overlayfs in user namespaces, which Linux has from 5.11 \
                 on: load the module `overlay`, or use a backend that is a VM"
            ),
        }
    }
}

/// Boots the guest.
///
/// # Errors
/// A stage without which there can be no guest failed.
pub fn boot() -> Result<Booted, BootError> {
    let stage = |stage: &'static str| move |cause| BootError { stage, cause };
    let kernel = |name: &'static str| move |errno| stage(name)(Cause::Kernel(errno));

    // This is first, because the console is in /dev.
    mounts::mount_devices().map_err(kernel("mount /dev"))?;
    let console = Console::open();
    let file = stages::read_boot_file().map_err(kernel("read the boot file"))?;
    let (boot, options) = Boot::from_file_with_options(&file)
        .map_err(|error| stage("read the boot file")(Cause::BootFile(error)))?;
    let random = stages::seed_random_generator(&boot.seed)
        .map_err(kernel("seed the random number generator"))?;
    stages::set_clock(boot.wall_time_ns).map_err(kernel("set the clock"))?;
    mounts::mount_root(boot.root_device).map_err(|errno| {
        stage("mount the root")(Cause::RootDevice(String::from(boot.root_device), errno))
    })?;
    mounts::switch_root().map_err(kernel("switch to the root"))?;
    let limits = SharedMemoryLimits::for_this_machine();
    mounts::mount_system_directories(&limits)
        .map_err(kernel("mount /proc, /sys, /run and others"))?;
    if options.grow_root {
        stages::grow_root(boot.root_device).map_err(kernel("grow the root's file system"))?;
    }
    if let Err(errno) = limits.set_parameters() {
        console.error(format_args!(
            "shared memory, message queues and semaphores are not limited: {errno}"
        ));
    }
    stages::set_hostname(boot.hostname).map_err(kernel("set the host name"))?;
    stages::bring_up_loopback().map_err(kernel("bring up the loopback interface"))?;
    let (ports, listener) = match boot.link {
        BootLink::Serial => (
            ports::open_ports().map_err(kernel("open the serial ports"))?,
            None,
        ),
        BootLink::Vsock { port, ready_port } => {
            let listener = vsock::listen_on(port).map_err(kernel("listen on vsock"))?;
            vsock::notify_host(ready_port).map_err(kernel("notify the host over vsock"))?;
            (Vec::new(), Some(listener))
        }
    };
    if ports.is_empty() && listener.is_none() {
        return Err(stage("open the serial ports")(Cause::NoPorts));
    }
    Ok(Booted {
        boot_id: boot.boot_id,
        reset_key: boot.reset_key,
        ports,
        listener,
        has_clock: true,
        has_network: true,
        has_cgroups: true,
        root_disk: match boot.disk_is_persistent {
            true => RootDisk::Persistent,
            false => RootDisk::Scratch,
        },
        random: Some(random),
        console,
    })
}

/// Writes everything back and makes the root read-only. It may wait for the disk,
/// so it is only for the power-off, when no host is served any more.
///
/// A process whose root it is cannot unmount it. Mounted read-only it is just as
/// clean: the journal is empty and marked so.
pub(crate) fn make_root_clean() -> Result<(), Errno> {
    rustix::fs::sync();
    mount_remount("/", MountFlags::RDONLY, c"")
}

/// Makes the disk clean, if it is not, and resets the machine, which ends the VMM.
pub fn halt(console: &Console) -> ! {
    if let Err(error) = make_root_clean() {
        console.error(format_args!("the disk was not cleanly unmounted: {error}"));
    }
    // Some VMMs reboot a machine that resets itself. Those have ACPI, which can
    // power it off.
    if access(c"/sys/firmware/acpi", Access::EXISTS).is_ok() {
        let _ = reboot(RebootCommand::PowerOff);
    }
    loop {
        // The VMM runs with -no-reboot, and the kernel with reboot=t: a triple
        // fault works on machines without ACPI too.
        let _ = reboot(RebootCommand::Restart);
    }
}
