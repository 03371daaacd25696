use std::{path::PathBuf, sync::Arc, time::Duration};

use super::Vm;
#[cfg(feature = "broker")]
use crate::broker::{BrokerSettings, BrokeredSecret};
use crate::{
    acceleration::Acceleration,
    backend::{Backends, Qemu, Root},
    confinement::Confinement,
    error::Error,
    link::LinkKind,
    network::{Dialer, NetworkHooks, NetworkObserver, NetworkPolicy, Resolver},
    quotas::Quotas,
    snapshot::LoadedSnapshot,
};

/// The configuration of a VM to start.
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
    pub(super) disk: Option<PathBuf>,
    pub(super) snapshot: Option<PathBuf>,
    /// A template that is started in place of booting.
    pub(super) template: Option<Arc<LoadedSnapshot>>,
    /// Where the layer of a VM of a template is written, if it is to have a name.
    pub(super) layer: Option<PathBuf>,
    /// The key of the template that is made of this VM.
    pub(super) template_key: Option<String>,
    pub(super) warm: bool,
    pub(super) backing_folders: Vec<PathBuf>,
    pub(super) disk_mib: Option<u32>,
    pub(super) vcpus: u32,
    pub(super) memory_mib: u32,
    pub(super) hostname: Option<String>,
    pub(super) boot_timeout: Duration,
    pub(super) acceleration: Option<Acceleration>,
    pub(super) link: Option<LinkKind>,
    pub(super) confinement: Confinement,
    pub(super) quotas: Quotas,
    pub(super) randomise_addresses: bool,
    pub(super) kernel: Option<PathBuf>,
    pub(super) kernel_arguments: String,
    pub(super) backend: Option<String>,
    pub(super) backends: Backends,
    pub(super) host_compat: bool,
    pub(super) agent: Option<PathBuf>,
    pub(super) scratch_folder: PathBuf,
    pub(super) network: Option<NetworkPolicy>,
    pub(super) network_hooks: NetworkHooks,
    #[cfg(feature = "broker")]
    pub(super) broker: BrokerSettings,
}

impl Default for VmBuilder {
    fn default() -> Self {
        Self {
            id: None,
            listed: true,
            image: None,
            directory: None,
            disk: None,
            snapshot: None,
            template: None,
            layer: None,
            template_key: None,
            warm: false,
            backing_folders: Vec::new(),
            disk_mib: None,
            vcpus: 1,
            memory_mib: 1024,
            hostname: None,
            boot_timeout: Duration::from_secs(60),
            acceleration: None,
            link: None,
            confinement: Confinement::default(),
            quotas: Quotas::new(),
            randomise_addresses: false,
            kernel: None,
            kernel_arguments: String::new(),
            backend: None,
            backends: Backends::new(),
            host_compat: false,
            agent: None,
            scratch_folder: std::env::temp_dir(),
            network: None,
            network_hooks: NetworkHooks::default(),
            #[cfg(feature = "broker")]
            broker: BrokerSettings::default(),
        }
    }
}

impl VmBuilder {
    /// The least memory that a guest can work with.
    pub const MIN_MEMORY_MIB: u32 = 64;

    /// The most virtual processors that the guest's kernel supports.
    pub const MAX_VCPUS: u32 = 16;

    /// Sets the id of the VM, unique among the running VMs of this user: 1 to 48
    /// letters, digits, dots, hyphens and underscores. Twelve random hexadecimal
    /// digits by default.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Prevents other programs of this user from listing the VM and attaching to
    /// it with [`Vm::attach`].
    pub fn unlisted(mut self) -> Self {
        self.listed = false;
        self
    }

    /// Sets the ext4 image to boot from. It is never written: each VM has its own
    /// layer above it, which is deleted with the VM.
    pub fn image(mut self, path: impl Into<PathBuf>) -> Self {
        self.image = Some(path.into());
        self
    }

    /// Sets a directory of this machine as the root, in place of an
    /// [image](Self::image). It is never written: changes are lost with the VM.
    /// Only the backend `process` supports it.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Some(path.into());
        self
    }

    /// Sets the disk to boot from and to write to, in place of an
    /// [image](Self::image): a qcow2 layer made by
    /// [`create_child`](crate::disk::image::create_child). It is kept when the VM
    /// ends, to boot from again or to be read with [`Disk`](crate::disk::Disk).
    /// It is locked while the VM runs.
    ///
    /// ```no_run
    /// # async fn example() -> anyhow::Result<()> {
    /// use vmcell::{Vm, disk::{Disk, image::{OpenOptions, create_child}}};
    ///
    /// create_child("base.ext4", "work.qcow2", OpenOptions::new())?;
    /// let vm = Vm::builder().disk("work.qcow2").start().await?;
    /// vm.exec(["touch", "/etc/done"]).await?;
    /// vm.stop().await?; // flushes all writes to the disk
    /// assert!(Disk::open("work.qcow2")?.exists("/etc/done")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn disk(mut self, path: impl Into<PathBuf>) -> Self {
        self.disk = Some(path.into());
        self
    }

    /// Restores a [snapshot](Vm::snapshot) in place of booting from an
    /// [image](Self::image). All of it is checked before anything is started.
    ///
    /// The VM has the processors, the memory, the kernel, the agent, the link and the
    /// backend of the snapshot: what is set here is not used. If the image below its
    /// disk has moved, set where it is now with [`image`](Self::image). Its disk ends
    /// with it, unless the snapshot was taken [without its
    /// disk](crate::snapshot::SnapshotOptions::leave_disk).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), vmcell::Error> {
    /// let vm = vmcell::Vm::builder()
    ///     .snapshot("snapshots/done")
    ///     .hostname("second")
    ///     .start()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(mut self, path: impl Into<PathBuf>) -> Self {
        self.snapshot = Some(path.into());
        self
    }

    /// Starts the VM from a [template](crate::template) of this configuration, which
    /// takes a fraction of the time of a boot. The template is made if it is not
    /// there: that takes as long as a boot, and some hundred milliseconds.
    ///
    /// A VM that cannot be started so boots as usual: one with a [disk](Self::disk) of
    /// its own, with another [link](Self::link) than serial, or on a backend that
    /// cannot take snapshots.
    pub fn warm(mut self, warm: bool) -> Self {
        self.warm = warm;
        self
    }

    /// Allows files in this folder as backing files of the [disk](Self::disk).
    /// Without this only files in the disk's own folder are allowed. Can be called
    /// many times.
    pub fn allow_backing(mut self, folder: impl Into<PathBuf>) -> Self {
        self.backing_folders.push(folder.into());
        self
    }

    /// Sets the size of the disk in MiB; that of the image by default, which is also the
    /// least. The file system is grown to it before the VM starts. What is not written takes
    /// no space on this machine.
    ///
    /// A [disk](Self::disk) that is kept has the size with which it was
    /// [made](crate::disk::image::create_child_of_size), and the file system is grown to
    /// that. The backend `process` has no disk.
    pub fn disk_mib(mut self, mib: u32) -> Self {
        self.disk_mib = Some(mib);
        self
    }

    /// Sets the number of virtual processors; 1 by default.
    pub fn vcpus(mut self, count: u32) -> Self {
        self.vcpus = count;
        self
    }

    /// Sets the size of the memory in MiB; 1024 by default.
    pub fn memory_mib(mut self, mib: u32) -> Self {
        self.memory_mib = mib;
        self
    }

    /// Sets the guest's host name. It is `vmcell` by default, and `vmcell-` and random
    /// digits if the VM is restored from a snapshot.
    pub fn hostname(mut self, name: impl Into<String>) -> Self {
        self.hostname = Some(name.into());
        self
    }

    /// Sets how long the guest may take until its agent answers; 60 s by default.
    pub fn boot_timeout(mut self, timeout: Duration) -> Self {
        self.boot_timeout = timeout;
        self
    }

    /// Requires KVM or emulation. By default KVM is used where it works, and
    /// emulation where it does not.
    pub fn acceleration(mut self, acceleration: Acceleration) -> Self {
        self.acceleration = Some(acceleration);
        self
    }

    /// Requires a kind of link between the host and the agent. By default it is a
    /// serial port with QEMU, and the kind that the backend has with others.
    pub fn link(mut self, link: LinkKind) -> Self {
        self.link = Some(link);
        self
    }

    /// Sets whether the VMM is [confined](crate::confinement); by default as well as the
    /// system allows.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), vmcell::Error> {
    /// use vmcell::{Confinement, Vm};
    ///
    /// let vm = Vm::builder()
    ///     .image("base.ext4")
    ///     .confinement(Confinement::Required)
    ///     .start()
    ///     .await?;
    /// for status in vm.health().await.confinement.unwrap_or_default() {
    ///     println!("{}: {}", status.layer, status.detail);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn confinement(mut self, confinement: Confinement) -> Self {
        self.confinement = confinement;
        self
    }

    /// Sets what the VM may use of this machine: how much it writes to its disk, processor time,
    /// and the rates of disk and link. Each quota has a default of its own: see [`Quotas`].
    pub fn quotas(mut self, quotas: Quotas) -> Self {
        self.quotas = quotas;
        self
    }

    /// Keeps address space randomisation on in an emulated guest. By default it
    /// is off there, because the emulator would have to translate every program
    /// again each time it starts, which takes several times longer. With KVM it
    /// is always on.
    pub fn randomise_addresses(mut self) -> Self {
        self.randomise_addresses = true;
        self
    }

    /// Sets the guest kernel, an uncompressed `vmlinux`; the cached one by
    /// default.
    pub fn kernel(mut self, path: impl Into<PathBuf>) -> Self {
        self.kernel = Some(path.into());
        self
    }

    /// Adds to the kernel's command line.
    pub fn kernel_arguments(mut self, arguments: impl Into<String>) -> Self {
        self.kernel_arguments = arguments.into();
        self
    }

    /// Sets the backend that runs the VM by name: `qemu`, `process`, or one that
    /// [`backends`](Self::backends) adds. By default it is the first that can.
    pub fn backend(mut self, name: impl Into<String>) -> Self {
        self.backend = Some(name.into());
        self
    }

    /// Sets the backends to choose from; those of the library by default.
    pub fn backends(mut self, backends: Backends) -> Self {
        self.backends = backends;
        self
    }

    /// Allows backends without a VM, which are no security boundary: see
    /// [`Backend::is_vm`](crate::backend::Backend::is_vm). The guest's programs run
    /// on the host's own kernel there.
    pub fn allow_host_compat(mut self) -> Self {
        self.host_compat = true;
        self
    }

    /// Sets the QEMU to use; by default the one that `VMCELL_QEMU` names or that
    /// is in `PATH`.
    pub fn qemu(mut self, path: impl Into<PathBuf>) -> Self {
        self.backends = self.backends.with(Qemu::at(path));
        self
    }

    /// Sets the guest agent, a static program; the embedded one by default.
    pub fn agent(mut self, path: impl Into<PathBuf>) -> Self {
        self.agent = Some(path.into());
        self
    }

    /// Sets the folder of the VM's own layer, an unlinked file; the system's
    /// temporary folder by default.
    pub fn scratch_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.scratch_folder = path.into();
        self
    }

    /// Boots or restores the VM and waits until its agent answers.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the configuration is invalid, [`Error::Snapshot`] if a
    /// snapshot cannot be restored here,
    /// [`Error::NoSuchBackend`] and [`Error::BackendUnavailable`] if the backend
    /// is unknown or cannot be used here, [`Error::Quota`] if it cannot enforce a quota,
    /// [`Error::Missing`] and
    /// [`Error::BadFile`] if a program or a file that it needs is missing or
    /// cannot be used, [`Error::Disk`] if the disk cannot be used, or
    /// [`Error::Boot`] with the end of the console if the guest does not boot.
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM ends and nothing is left behind.
    pub async fn start(self) -> Result<Vm, Error> {
        match self.warm {
            // Boxed, because making a template starts a VM, too.
            true => Box::pin(super::warm::start(self)).await,
            false => super::start::start(self).await,
        }
    }

    /// Sets what the programs of the guest may reach: see [`network`](crate::network). By
    /// default nothing. With a policy, ports can be [published](crate::port) only if it
    /// [says so](NetworkPolicy::published_ports).
    pub fn network(mut self, policy: NetworkPolicy) -> Self {
        self.network = Some(policy);
        self
    }

    /// Sets how names of hosts are resolved. The default is the resolver of this system.
    pub fn resolver(mut self, resolver: impl Resolver + 'static) -> Self {
        self.network_hooks.resolver = Arc::new(resolver);
        self
    }

    /// Sets how hosts are connected to. The default does so directly.
    pub fn dialer(mut self, dialer: impl Dialer + 'static) -> Self {
        self.network_hooks.dialer = Arc::new(dialer);
        self
    }

    /// Sets who is told of all that the programs of the guest want of the network.
    pub fn network_observer(mut self, observer: impl NetworkObserver + 'static) -> Self {
        self.network_hooks.observer = Some(Arc::new(observer));
        self
    }

    /// Lets programs of the guest use a secret that they do not have: see
    /// [`broker`](crate::broker). Can be called many times.
    #[cfg(feature = "broker")]
    pub fn broker(mut self, secret: &BrokeredSecret) -> Self {
        self.broker.secrets.push(secret.clone());
        self
    }

    /// Trusts certificates, as PEM, when the host connects to others with
    /// [brokered secrets](crate::broker), besides those that this system trusts. What the
    /// guest trusts does not change.
    #[cfg(feature = "broker")]
    pub fn broker_root(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.broker.roots.push(pem.into());
        self
    }

    /// Checks what can be checked without looking at the machine.
    pub(crate) fn validate(&self) -> Result<(), Error> {
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
        let is_valid = |name: &&String| {
            (1..=63).contains(&name.len())
                && !name.starts_with('-')
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
        };
        if let Some(name) = self.hostname.as_ref().filter(|name| !is_valid(name)) {
            return invalid(format!("{name:?} is not a valid host name"));
        }
        self.quotas.validate()
    }

    /// Returns what the VM boots from.
    pub(super) fn root(&self) -> Result<Root, Error> {
        let image = self.image.clone().map(Root::Image);
        let directory = self.directory.clone().map(Root::Directory);
        let mut named = image.into_iter().chain(directory).chain(self.disk_root());
        match (named.next(), named.next()) {
            (Some(root), None) => Ok(root),
            (None, _) => Err(Error::Invalid(
                "no image is set: use VmBuilder::image".to_owned(),
            )),
            (Some(_), Some(_)) => Err(Error::Invalid(
                "more than one of image, directory and disk is set: choose one, a disk has its \
                 image as its backing file"
                    .to_owned(),
            )),
        }
    }

    /// Returns the size of the disk in bytes.
    pub(super) fn disk_size(&self) -> Option<u64> {
        self.disk_mib.map(|mib| u64::from(mib) << 20)
    }

    pub(super) fn disk_root(&self) -> Option<Root> {
        Some(Root::Disk {
            path: self.disk.clone()?,
            backing_folders: self.backing_folders.clone(),
        })
    }
}
