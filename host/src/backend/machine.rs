use std::{
    borrow::Cow,
    fs::File,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use vmcell_wire::boot;

use super::SavedMachine;
use crate::{
    acceleration::AccelerationChoice,
    confinement::Confinement,
    error::Error,
    initramfs::initramfs,
    link::{LinkChoice, LinkKind},
    locate,
    memory_file::memory_file,
    overlay::Overlay,
    quotas::Quotas,
    random::random_bytes,
};

/// The kernel arguments of every VM.
///
/// `panic=-1`: a panic resets it at once. `init_on_free=1`: memory is zeroed when it is
/// freed, so that nothing of a program stays that has ended, and no snapshot contains it. It
/// is then not zeroed again when it is allocated, which our kernel would do otherwise, so it
/// costs next to nothing.
pub(super) const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 init_on_free=1";

/// The description of a VM to start: everything that differs from one VM to the
/// next.
#[derive(Debug)]
pub struct Machine {
    pub(crate) id: String,
    pub(crate) root: Root,
    /// The least size of the disk in bytes, to which its file system is grown.
    pub(crate) disk_size: Option<u64>,
    pub(crate) vcpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) hostname: String,
    pub(crate) acceleration: AccelerationChoice,
    pub(crate) link: Option<LinkKind>,
    pub(crate) confinement: Confinement,
    pub(crate) quotas: Quotas,
    pub(crate) randomise_addresses: bool,
    pub(crate) kernel: Option<PathBuf>,
    pub(crate) kernel_arguments: String,
    pub(crate) agent: Cow<'static, [u8]>,
    pub(crate) boot_id: [u8; 16],
    pub(crate) reset_key: [u8; 16],
    pub(crate) scratch_folder: PathBuf,
    /// Whether the memory is to be a file of its own when the VM is saved.
    pub(crate) shares_memory: bool,
    /// What it continues from, if it does not boot.
    pub(crate) saved: Option<SavedMachine>,
    /// Where the layer of a restored VM is written, if it is to have a name.
    pub(crate) layer: Option<PathBuf>,
    /// Alters the boot file, for tests.
    #[cfg(test)]
    pub(crate) alter_boot_file: Option<fn(Vec<u8>) -> Vec<u8>>,
}

/// What a VM boots from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Root {
    /// An image, which is not modified.
    Image(PathBuf),
    /// A directory of this machine, which is not modified.
    Directory(PathBuf),
    /// A disk that the VM writes to, and that is kept.
    Disk {
        /// The qcow2 layer that the VM writes to.
        path: PathBuf,
        /// The folders where its backing files may be; its own folder if the
        /// list is empty.
        backing_folders: Vec<PathBuf>,
    },
}

impl Root {
    /// Returns the path of the image, directory or disk.
    pub fn path(&self) -> &Path {
        match self {
            Self::Image(path) | Self::Directory(path) => path,
            Self::Disk { path, .. } => path,
        }
    }

    /// Returns whether what the VM writes is kept when it has ended.
    pub fn is_kept(&self) -> bool {
        match self {
            Self::Image(_) | Self::Directory(_) => false,
            Self::Disk { .. } => true,
        }
    }
}

/// How the agent reaches the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BootLink {
    /// Through the serial ports of the machine.
    Serial,
    /// Through vsock, where the agent listens.
    Vsock {
        /// The port on which it listens.
        port: u32,
        /// The port of the host to which it connects once, as soon as it
        /// listens.
        ready_port: u32,
    },
}

impl Machine {
    /// Returns the id of the VM, which is part of the names of its processes.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns what it boots from.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns how many virtual processors it has.
    pub fn vcpus(&self) -> u32 {
        self.vcpus
    }

    /// Returns its memory size in MiB.
    pub fn memory_mib(&self) -> u32 {
        self.memory_mib
    }

    /// Returns whether it is accelerated or emulated.
    pub fn acceleration(&self) -> AccelerationChoice {
        self.acceleration
    }

    /// Returns whether its VMM is to be confined: see [`VmmProgram`](super::VmmProgram).
    pub fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// Returns its quotas. [`VmmProgram`](super::VmmProgram) enforces those of the processor, and
    /// this library that of the link. A backend [says](super::Launched::enforces) which others
    /// it enforces, without which a VM that has them is not started.
    pub fn quotas(&self) -> Quotas {
        self.quotas
    }

    /// Returns the requested kind of link; `None` if the backend may choose.
    pub fn link(&self) -> Option<LinkKind> {
        self.link
    }

    /// Returns the link of a backend that supports one kind only.
    ///
    /// # Errors
    /// [`Error::Invalid`] if another kind was requested.
    pub fn only_link(&self, kind: LinkKind, backend: &str) -> Result<LinkChoice, Error> {
        match self.link {
            None => Ok(LinkChoice::new(kind, "the only one that the backend has")),
            Some(wanted) if wanted == kind => Ok(LinkChoice::requested(kind)),
            Some(wanted) => Err(Error::Invalid(format!(
                "the backend {backend} has no link {wanted}: it has {kind} only"
            ))),
        }
    }

    /// Returns the saved VM that it continues from, or `None` if it boots. Only a backend
    /// with the [feature](super::Feature::Snapshot) is asked for one.
    pub fn saved(&self) -> Option<&SavedMachine> {
        self.saved.as_ref()
    }

    /// Returns the path of the guest's kernel, an uncompressed `vmlinux`.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::BadFile`].
    pub fn kernel(&self) -> Result<PathBuf, Error> {
        locate::kernel(self.kernel.as_deref())
    }

    /// Returns what the caller adds to the kernel's command line.
    pub fn kernel_arguments(&self) -> &str {
        &self.kernel_arguments
    }

    /// Returns the agent's binary, which is statically linked.
    pub fn agent(&self) -> &[u8] {
        &self.agent
    }

    /// Returns the folder for files that are needed while the VM lives.
    pub fn scratch_folder(&self) -> &Path {
        &self.scratch_folder
    }

    /// Returns the boot file, from which the agent reads its settings.
    ///
    /// # Errors
    /// [`Error::Host`] if the system provides no random bytes.
    pub fn boot_file(&self, root_device: &str, link: BootLink) -> Result<Vec<u8>, Error> {
        let link = match link {
            BootLink::Serial => boot::BootLink::Serial,
            BootLink::Vsock { port, ready_port } => boot::BootLink::Vsock { port, ready_port },
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let boot = boot::Boot {
            boot_id: self.boot_id,
            reset_key: self.reset_key,
            seed: random_bytes()?,
            wall_time_ns: now.map_or(0, |time| time.as_nanos().try_into().unwrap_or(0)),
            hostname: &self.hostname,
            root_device,
            link,
            disk_is_persistent: self.root.is_kept(),
        };
        let options = boot::BootOptions {
            grow_root: self.disk_size.is_some(),
        };
        let file = boot
            .to_file_with(options)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        #[cfg(test)]
        let file = self
            .alter_boot_file
            .map_or(file.clone(), |alter| alter(file));
        Ok(file)
    }

    /// Returns the initramfs with the agent and its boot file, in an unnamed
    /// file.
    ///
    /// # Errors
    /// [`Error::Host`] if the system provides no memory or no random bytes.
    pub fn initramfs(&self, root_device: &str, link: BootLink) -> Result<File, Error> {
        let boot_file = self.boot_file(root_device, link)?;
        let archive = initramfs(&self.agent, &boot_file);
        memory_file("vmcell-initramfs", &archive).map_err(Error::host("make the initramfs"))
    }

    /// Opens the layers of its disk.
    pub(crate) fn overlay(&self) -> Result<Overlay, Error> {
        if let Some(saved) = &self.saved
            && !self.root.is_kept()
        {
            return Overlay::restore(saved, &self.scratch_folder, self.layer.as_deref());
        }
        match &self.root {
            Root::Image(image) => {
                Overlay::create(image, self.disk_size.unwrap_or(0), &self.scratch_folder)
            }
            Root::Directory(path) => Err(Error::Invalid(format!(
                "a VM cannot boot from the directory {}: make an image of it, or choose the \
                 backend process",
                path.display()
            ))),
            Root::Disk {
                path,
                backing_folders,
            } => Overlay::open(path, backing_folders),
        }
    }
}

#[cfg(test)]
impl Machine {
    /// A machine for tests of command lines.
    pub(super) fn sample(acceleration: crate::acceleration::Acceleration) -> Self {
        Self {
            id: "0123".to_owned(),
            root: Root::Image("/image".into()),
            disk_size: None,
            vcpus: 2,
            memory_mib: 256,
            hostname: "host".to_owned(),
            acceleration: AccelerationChoice::requested(acceleration),
            link: None,
            confinement: Confinement::Off,
            quotas: Quotas::new(),
            randomise_addresses: false,
            kernel: None,
            kernel_arguments: "debug".to_owned(),
            agent: Cow::Borrowed(b""),
            boot_id: [0; 16],
            reset_key: [0; 16],
            scratch_folder: "/tmp".into(),
            shares_memory: false,
            saved: None,
            layer: None,
            alter_boot_file: None,
        }
    }
}
