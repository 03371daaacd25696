//! Backends whose VMMs this machine may not have, tested with a fake that
//! follows the VMMs' documentation from the command line to the vsock.
#![allow(clippy::unwrap_used)]

mod api;
mod cloud_hypervisor;
mod fake;
mod firecracker;
mod jail;
mod snapshots;

use std::{os::unix::fs::PermissionsExt as _, path::PathBuf};

use vmcell::{
    Acceleration, End, LinkKind, Vm, VmBuilder,
    backend::{Backend, BackendHealth, Backends, Feature, Launched, Machine, RunFolder},
};

/// A backend that always reports itself available: there may be no KVM here,
/// and the fake does not need it.
#[derive(Debug)]
struct AlwaysAvailable<B>(B);

impl<B: Backend> Backend for AlwaysAvailable<B> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn health(&self) -> BackendHealth {
        BackendHealth::available("a fake")
            .with(Feature::Pause)
            .with(Feature::Snapshot)
    }

    fn launch(&self, machine: Machine) -> Result<Launched, vmcell::Error> {
        self.0.launch(machine)
    }
}

/// The file that a fake leaves in its folder when it is started.
const STARTED: &str = "started";

/// A fake VMM in its own folder.
struct Fake {
    folder: tempfile::TempDir,
}

impl Fake {
    /// Creates a fake with this name and `--version` output.
    fn new(name: &str, version: &str) -> Self {
        Self::with_fault(name, version, "")
    }

    /// Creates a fake that does something wrong.
    fn with_fault(name: &str, version: &str, fault: &str) -> Self {
        let fake = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let this = std::env::current_exe().unwrap();
        let script = format!(
            "#!/bin/sh\n\
             test \"$1\" = --version && echo {version} && exit\n\
             touch {}\n\
             export {}=\"$*\" {}='{version}' {}={fault}\n\
             test \"$*\" = '--api-socket fd=4' && exec <&4\n\
             exec {} fake::a_vmm --exact --nocapture --quiet\n",
            fake.path(STARTED).display(),
            fake::ARGUMENTS,
            fake::VERSION,
            fake::FAULT,
            this.display()
        );
        fake.write(name, &script);
        fake
    }

    fn write(&self, name: &str, script: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, script).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, executable).unwrap();
        path
    }

    /// Returns whether it was started.
    fn was_started(&self) -> bool {
        self.path(STARTED).exists()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn builder(backend: impl Backend + 'static) -> VmBuilder {
    let name = backend.name().to_owned();
    Vm::builder()
        .image(vmcell_rootfs::recipe::base().cached().unwrap().path)
        .memory_mib(128)
        .vcpus(2)
        .acceleration(Acceleration::Kvm)
        .backends(Backends::new().with(AlwaysAvailable(backend)))
        .backend(name)
}

/// Starts a VM, checks it and stops it.
async fn boots_and_stops(builder: VmBuilder, backend: &str) {
    let vm = builder.start().await.unwrap();
    let health = vm.health().await;
    assert!(health.is_healthy(), "{health:?}");
    assert_eq!(health.backend, backend);
    assert_eq!(health.link.kind, LinkKind::HybridVsock);
    assert!(
        vm.console().unwrap().contains("the guest's console"),
        "{}",
        vm.console().unwrap()
    );
    // An agent without services is still reachable.
    let error = vm.services().list().await.unwrap_err();
    assert_eq!(error.code(), "unsupported", "{error:?}");
    assert!(error.to_string().contains("lacks services"), "{error}");
    assert!(vm.health().await.is_healthy());
    let folder = RunFolder::base().join(vm.id());
    assert!(folder.exists());
    vm.stop().await.unwrap();
    assert_eq!(vm.ended().await.reason, End::Stopped);
    assert!(!folder.exists());
}
