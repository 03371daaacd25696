use std::{path::PathBuf, time::Duration};

use super::Vm;
use crate::{
    acceleration::Acceleration,
    backend::{Backends, Qemu, Root},
    error::Error,
    link::LinkKind,
};

/// Describes a VM before it is started.
///
/// ```no_run
/// # async fn example() -> Result<(), vmcell::Error> {
/// use vmcell::Vm;
///
/// let vm = Vm::builder()
///     .image("base.ext4")
///     .vcpus(2)
///     .memory_mib(512)
///     .start()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct VmBuilder {
    pub(super) id: Option<String>,
    pub(super) listed: bool,
    pub(super) image: Option<PathBuf>,
    pub(super) directory: Option<PathBuf>,
    #[cfg(feature = "disk")]
    pub(super) disk: Option<PathBuf>,
    #[cfg(feature = "disk")]
    pub(super) backing_folders: Vec<PathBuf>,
    pub(super) vcpus: u32,
    pub(super) memory_mib: u32,
    pub(super) hostname: String,
    pub(super) boot_timeout: Duration,
    pub(super) acceleration: Option<Acceleration>,
    pub(super) link: Option<LinkKind>,
    pub(super) randomise_addresses: bool,
    pub(super) kernel: Option<PathBuf>,
    pub(super) kernel_arguments: String,
    pub(super) backend: Option<String>,
    pub(super) backends: Backends,
    pub(super) host_compat: bool,
    pub(super) agent: Option<PathBuf>,
    pub(super) scratch_folder: PathBuf,
}

impl Default for VmBuilder {
    fn default() -> Self {
        Self {
            id: None,
            listed: true,
            image: None,
            directory: None,
            #[cfg(feature = "disk")]
            disk: None,
            #[cfg(feature = "disk")]
            backing_folders: Vec::new(),
            vcpus: 1,
            memory_mib: 1024,
            hostname: "vmcell".to_owned(),
            boot_timeout: Duration::from_secs(60),
            acceleration: None,
            link: None,
            randomise_addresses: false,
            kernel: None,
            kernel_arguments: String::new(),
            backend: None,
            backends: Backends::new(),
            host_compat: false,
            agent: None,
            scratch_folder: std::env::temp_dir(),
        }
    }
}

impl VmBuilder {
    /// The least memory that a guest can work with.
    pub const MIN_MEMORY_MIB: u32 = 64;

    /// The most virtual processors that the guest's kernel knows.
    pub const MAX_VCPUS: u32 = 16;

    /// A name for the VM, unique among the VMs of this user that run: 1 to 48
    /// letters, digits, dots, hyphens and underscores. Twelve hexadecimal
    /// digits if not set.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Keeps other programs of this user from finding the VM and getting in
    /// with [`Vm::attach`].
    pub fn unlisted(mut self) -> Self {
        self.listed = false;
        self
    }

    /// The ext4 image to boot from. It is never written: each VM has a layer
    /// of its own above it, which is gone with the VM.
    pub fn image(mut self, path: impl Into<PathBuf>) -> Self {
        self.image = Some(path.into());
        self
    }

    /// The directory of this machine to see as the root, in place of an
    /// [image](Self::image). It is never written: what changes is gone with the
    /// VM. Only the backend `process` can.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Some(path.into());
        self
    }

    /// The disk to boot from and to write to, in place of an
    /// [image](Self::image): a qcow2 layer that
    /// [`create_child`](crate::disk::image::create_child) has made. It stays when
    /// the VM ends, to boot from again or to be looked into with
    /// [`Disk`](crate::disk::Disk). Meanwhile nobody else can have it.
    ///
    /// ```no_run
    /// # async fn example() -> anyhow::Result<()> {
    /// use vmcell::{Vm, disk::{Disk, image::{OpenOptions, create_child}}};
    ///
    /// create_child("base.ext4", "work.qcow2", &OpenOptions::new())?;
    /// let vm = Vm::builder().disk("work.qcow2").start().await?;
    /// vm.exec(["touch", "/etc/done"]).await?;
    /// vm.stop().await?; // in order, so that all of it is on the disk
    /// assert!(Disk::open("work.qcow2")?.exists("/etc/done")?);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "disk")]
    pub fn disk(mut self, path: impl Into<PathBuf>) -> Self {
        self.disk = Some(path.into());
        self
    }

    /// Allows files beneath this folder to be beneath the
    /// [disk](Self::disk). Without it only those in the disk's own folder are.
    /// Can be called many times.
    #[cfg(feature = "disk")]
    pub fn allow_backing(mut self, folder: impl Into<PathBuf>) -> Self {
        self.backing_folders.push(folder.into());
        self
    }

    /// How many virtual processors; 1 if not set.
    pub fn vcpus(mut self, count: u32) -> Self {
        self.vcpus = count;
        self
    }

    /// How much memory, in MiB; 1024 if not set.
    pub fn memory_mib(mut self, mib: u32) -> Self {
        self.memory_mib = mib;
        self
    }

    /// The guest's host name; `vmcell` if not set.
    pub fn hostname(mut self, name: impl Into<String>) -> Self {
        self.hostname = name.into();
        self
    }

    /// How long the guest may take until its agent answers; 60 s if not set.
    pub fn boot_timeout(mut self, timeout: Duration) -> Self {
        self.boot_timeout = timeout;
        self
    }

    /// Insists on a way to execute the guest's instructions. Otherwise KVM is
    /// used where it works, and emulation where it does not.
    pub fn acceleration(mut self, acceleration: Acceleration) -> Self {
        self.acceleration = Some(acceleration);
        self
    }

    /// Insists on what carries the bytes between the host and the agent.
    /// Otherwise it is a serial port with QEMU, and what there is with others.
    pub fn link(mut self, link: LinkKind) -> Self {
        self.link = Some(link);
        self
    }

    /// Keeps address space randomisation on in an emulated guest. Without this
    /// it is off there, because the emulator would translate every program
    /// anew each time it starts, which takes several times longer. With KVM
    /// it is always on.
    pub fn randomise_addresses(mut self) -> Self {
        self.randomise_addresses = true;
        self
    }

    /// A guest kernel (an uncompressed `vmlinux`) other than the cached one.
    pub fn kernel(mut self, path: impl Into<PathBuf>) -> Self {
        self.kernel = Some(path.into());
        self
    }

    /// Adds to the kernel's command line.
    pub fn kernel_arguments(mut self, arguments: impl Into<String>) -> Self {
        self.kernel_arguments = arguments.into();
        self
    }

    /// What runs the VM, by its name: `qemu`, `process`, or one of those that
    /// [`backends`](Self::backends) adds. If not set it is the first that can.
    pub fn backend(mut self, name: impl Into<String>) -> Self {
        self.backend = Some(name.into());
        self
    }

    /// The backends to choose from; those of the library if not set.
    pub fn backends(mut self, backends: Backends) -> Self {
        self.backends = backends;
        self
    }

    /// Allows backends that are no VM and no security boundary: see
    /// [`Backend::is_vm`](crate::backend::Backend::is_vm). Everything in them
    /// runs on the host's own kernel.
    pub fn allow_host_compat(mut self) -> Self {
        self.host_compat = true;
        self
    }

    /// The QEMU to use; the one that `VMCELL_QEMU` names or that is in `PATH` if
    /// not set.
    pub fn qemu(mut self, path: impl Into<PathBuf>) -> Self {
        self.backends = self.backends.with(Qemu::at(path));
        self
    }

    /// A guest agent other than the embedded one: a static program.
    pub fn agent(mut self, path: impl Into<PathBuf>) -> Self {
        self.agent = Some(path.into());
        self
    }

    /// Where the VM's own layer is kept while it lives, in a file without a
    /// name; the system's temporary folder if not set.
    pub fn scratch_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.scratch_folder = path.into();
        self
    }

    /// Boots the VM and waits until its agent answers.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the description makes no sense,
    /// [`Error::NoSuchBackend`] and [`Error::BackendUnavailable`] if the backend
    /// is unknown or of no use here, [`Error::Missing`]
    /// and [`Error::BadFile`] if something that it needs is not there,
    /// [`Error::Disk`] if a disk that is to be kept cannot be used, or
    /// [`Error::Boot`] with the end of the console if the guest does not come
    /// up.
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM ends and nothing is left behind.
    pub async fn start(self) -> Result<Vm, Error> {
        super::start::start(self).await
    }

    /// Whether the description makes sense, as far as that can be said without
    /// looking at the machine.
    pub(super) fn validate(&self) -> Result<(), Error> {
        let invalid = |text: String| Err(Error::Invalid(text));
        if !(1..=Self::MAX_VCPUS).contains(&self.vcpus) {
            return invalid(format!(
                "{} virtual processors: choose 1 to {}",
                self.vcpus,
                Self::MAX_VCPUS
            ));
        }
        if self.memory_mib < Self::MIN_MEMORY_MIB {
            return invalid(format!(
                "{} MiB of memory are too little for a guest: choose at least {}",
                self.memory_mib,
                Self::MIN_MEMORY_MIB
            ));
        }
        let hostname_is_valid = (1..=63).contains(&self.hostname.len())
            && !self.hostname.starts_with('-')
            && self
                .hostname
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
        if !hostname_is_valid {
            return invalid(format!("{:?} cannot be a host name", self.hostname));
        }
        Ok(())
    }

    /// What the VM boots from.
    pub(super) fn root(&self) -> Result<Root, Error> {
        let image = self.image.clone().map(Root::Image);
        let directory = self.directory.clone().map(Root::Directory);
        let mut named = image.into_iter().chain(directory).chain(self.disk_root());
        match (named.next(), named.next()) {
            (Some(root), None) => Ok(root),
            (None, _) => Err(Error::Invalid(
                "no image is named: use VmBuilder::image".to_owned(),
            )),
            (Some(_), Some(_)) => Err(Error::Invalid(
                "more than one of image, directory and disk is named: choose one, a disk has its \
                 image beneath it"
                    .to_owned(),
            )),
        }
    }

    #[cfg(feature = "disk")]
    fn disk_root(&self) -> Option<Root> {
        Some(Root::Disk {
            path: self.disk.clone()?,
            backing_folders: self.backing_folders.clone(),
        })
    }

    #[cfg(not(feature = "disk"))]
    fn disk_root(&self) -> Option<Root> {
        None
    }
}
