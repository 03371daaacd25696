use std::{
    borrow::Cow,
    fs::File,
    io::{Seek as _, Write as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{MemfdFlags, memfd_create};
use vmcell_wire::boot;

use crate::{
    acceleration::AccelerationChoice,
    error::Error,
    initramfs::initramfs,
    link::{LinkChoice, LinkKind},
    locate,
    overlay::Overlay,
    random::random_bytes,
};

/// A VM to be: everything that differs from one VM to the next.
#[derive(Debug)]
pub struct Machine {
    pub(crate) id: String,
    pub(crate) root: Root,
    pub(crate) vcpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) hostname: String,
    pub(crate) acceleration: AccelerationChoice,
    pub(crate) link: Option<LinkKind>,
    pub(crate) randomise_addresses: bool,
    pub(crate) kernel: Option<PathBuf>,
    pub(crate) kernel_arguments: String,
    pub(crate) agent: Cow<'static, [u8]>,
    pub(crate) boot_id: [u8; 16],
    pub(crate) reset_key: [u8; 16],
    pub(crate) scratch_folder: PathBuf,
    /// Makes another boot file of it.
    #[cfg(test)]
    pub(crate) alter_boot_file: Option<fn(Vec<u8>) -> Vec<u8>>,
}

/// What a VM boots from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Root {
    /// An image that is not written.
    Image(PathBuf),
    /// A directory of this machine, which is not written.
    Directory(PathBuf),
    /// A disk that is written and kept.
    #[cfg(feature = "disk")]
    Disk {
        /// The qcow2 layer that takes what the VM writes.
        path: PathBuf,
        /// Where the files beneath it may be; its own folder if none is named.
        backing_folders: Vec<PathBuf>,
    },
}

impl Root {
    /// The file that was named.
    pub fn path(&self) -> &Path {
        match self {
            Self::Image(path) | Self::Directory(path) => path,
            #[cfg(feature = "disk")]
            Self::Disk { path, .. } => path,
        }
    }

    /// Whether what the VM writes stays when it has ended.
    pub fn is_kept(&self) -> bool {
        match self {
            Self::Image(_) | Self::Directory(_) => false,
            #[cfg(feature = "disk")]
            Self::Disk { .. } => true,
        }
    }
}

/// Where the agent finds its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BootLink {
    /// On the serial ports that the machine has.
    Ports,
    /// On vsock, where it listens.
    Vsock {
        /// The port on which it listens.
        port: u32,
        /// The port of the host to which it connects once as soon as it does.
        ready_port: u32,
    },
}

impl Machine {
    /// Names the VM; part of what a list of processes shows.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it boots from.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// How many virtual processors it has.
    pub fn vcpus(&self) -> u32 {
        self.vcpus
    }

    /// How much memory it has.
    pub fn memory_mib(&self) -> u32 {
        self.memory_mib
    }

    /// How its instructions are to be executed.
    pub fn acceleration(&self) -> AccelerationChoice {
        self.acceleration
    }

    /// What is to carry the bytes between host and agent. None: whatever is
    /// best.
    pub fn link(&self) -> Option<LinkKind> {
        self.link
    }

    /// For a backend that has one kind of link only: that one, if the caller
    /// does not insist on another.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the caller does.
    pub fn only_link(&self, kind: LinkKind, backend: &str) -> Result<LinkChoice, Error> {
        match self.link {
            None => Ok(LinkChoice::new(kind, "the only one that the backend has")),
            Some(wanted) if wanted == kind => Ok(LinkChoice::requested(kind)),
            Some(wanted) => Err(Error::Invalid(format!(
                "the backend {backend} has no link {wanted}: it has {kind} only"
            ))),
        }
    }

    /// The guest's kernel, an uncompressed `vmlinux`.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::BadFile`].
    pub fn kernel(&self) -> Result<PathBuf, Error> {
        locate::kernel(self.kernel.as_deref())
    }

    /// What the caller adds to the kernel's command line.
    pub fn kernel_arguments(&self) -> &str {
        &self.kernel_arguments
    }

    /// The agent's program, which is static.
    pub fn agent(&self) -> &[u8] {
        &self.agent
    }

    /// Where files may be kept while the VM lives.
    pub fn scratch_folder(&self) -> &Path {
        &self.scratch_folder
    }

    /// What the agent is told of its boot.
    ///
    /// # Errors
    /// [`Error::Host`] if there is no randomness to be had.
    pub fn boot_file(&self, root_device: &str, link: BootLink) -> Result<Vec<u8>, Error> {
        let link = match link {
            BootLink::Ports => boot::BootLink::Ports,
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
            disk_is_kept: self.root.is_kept(),
        };
        let file = boot
            .to_file()
            .map_err(|error| Error::Invalid(error.to_string()))?;
        #[cfg(test)]
        let file = self
            .alter_boot_file
            .map_or(file.clone(), |alter| alter(file));
        Ok(file)
    }

    /// The archive with the agent and its boot file, in a file without a name.
    ///
    /// # Errors
    /// [`Error::Host`] if the system refuses memory or randomness.
    pub fn initramfs(&self, root_device: &str, link: BootLink) -> Result<File, Error> {
        let boot_file = self.boot_file(root_device, link)?;
        let archive = initramfs(&self.agent, &boot_file);
        file_in_memory("vmcell-initramfs", &archive).map_err(Error::host("make the initramfs"))
    }

    /// Its disk, as layers that are open.
    pub(crate) fn overlay(&self) -> Result<Overlay, Error> {
        match &self.root {
            Root::Image(image) => Overlay::create(image, &self.scratch_folder),
            Root::Directory(path) => Err(Error::Invalid(format!(
                "a VM cannot boot from the directory {}: make an image of it, or choose the \
                 backend process",
                path.display()
            ))),
            #[cfg(feature = "disk")]
            Root::Disk {
                path,
                backing_folders,
            } => Overlay::open(path, backing_folders),
        }
    }
}

/// A file that no path leads to.
pub(super) fn file_in_memory(name: &str, contents: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(contents)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
impl Machine {
    /// One for tests of command lines.
    pub(super) fn sample(acceleration: crate::acceleration::Acceleration) -> Self {
        Self {
            id: "0123".to_owned(),
            root: Root::Image("/image".into()),
            vcpus: 2,
            memory_mib: 256,
            hostname: "host".to_owned(),
            acceleration: AccelerationChoice::requested(acceleration),
            link: None,
            randomise_addresses: false,
            kernel: None,
            kernel_arguments: "debug".to_owned(),
            agent: Cow::Borrowed(b""),
            boot_id: [0; 16],
            reset_key: [0; 16],
            scratch_folder: "/tmp".into(),
            alter_boot_file: None,
        }
    }
}
