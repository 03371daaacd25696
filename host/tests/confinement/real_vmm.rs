//! The VMM that users have.

use std::fs;

use vmcell::{Confinement, LinkKind, Vm, VmBuilder, confinement::Layer};

fn builder() -> VmBuilder {
    let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
    Vm::builder().image(image).memory_mib(128).backend("qemu")
}

/// Returns the process of a VM's QEMU, or of the program that provides its link.
fn process(name: &str, id: &str) -> String {
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.find(|entry| {
        let read = |file| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        read("cmdline").contains(id) && read("comm").trim() == name
    });
    found.unwrap().path().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_vm_runs_in_all_layers_that_are_required() {
    let vm = builder()
        .confinement(Confinement::Required)
        .start()
        .await
        .unwrap();
    assert!(vm.exec(["true"]).await.unwrap().success());
    let layers = vm.health().await.confinement.unwrap();
    let is_active = |layer| {
        layers
            .iter()
            .any(|status| status.layer == layer && status.is_active)
    };
    for layer in [
        Layer::Namespaces,
        Layer::Landlock,
        Layer::Seccomp,
        Layer::Capabilities,
    ] {
        assert!(is_active(layer), "{layers:?}");
    }
    let process = process("qemu-system-x86", vm.id());
    let status = fs::read_to_string(format!("{process}/status")).unwrap();
    for line in [
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
    ] {
        assert!(status.contains(line), "{status}");
    }
    // It is the first process of its own namespace.
    let ids = status
        .lines()
        .find(|line| line.starts_with("NSpid:"))
        .unwrap();
    assert_eq!(ids.split_whitespace().nth(2), Some("1"), "{status}");
    let mut root: Vec<_> = fs::read_dir(format!("{process}/root"))
        .unwrap()
        .flatten()
        .collect();
    root.retain(|entry| {
        !["etc", "lib", "lib32", "lib64", "nix", "proc", "usr"]
            .iter()
            .any(|name| entry.file_name() == *name)
    });
    // Folders that lead to a device and to the kernel, and to nothing else.
    for entry in root {
        let mut path = entry.path();
        while path.is_dir() {
            let inside: Vec<_> = fs::read_dir(&path).unwrap().flatten().collect();
            assert_eq!(inside.len(), 1, "{inside:?}");
            path = inside[0].path();
        }
        assert!(
            path.ends_with("dev/null") || path.ends_with("vmlinux"),
            "{path:?}"
        );
    }
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn the_program_of_a_link_is_confined_too() {
    let builder = builder()
        .link(LinkKind::HybridVsock)
        .confinement(Confinement::Required);
    let vm = builder.start().await.unwrap();
    assert!(vm.exec(["true"]).await.unwrap().success());
    let process = process("vhost-device-vs", vm.id());
    let status = fs::read_to_string(format!("{process}/status")).unwrap();
    for line in ["CapBnd:\t0000000000000000", "Seccomp:\t2"] {
        assert!(status.contains(line), "{status}");
    }
    assert!(!fs::exists(format!("{process}/root/etc/passwd")).unwrap());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn confinement_can_be_off() {
    let vm = builder()
        .confinement(Confinement::Off)
        .start()
        .await
        .unwrap();
    let layers = vm.health().await.confinement.unwrap();
    assert!(layers.iter().all(|status| !status.is_active), "{layers:?}");
    assert_eq!(layers.len(), Layer::ALL.len());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_vmm_that_is_a_script_is_refused_where_confinement_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("qemu");
    fs::write(&script, "#!/bin/sh\nexec qemu-system-x86_64 \"$@\"\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    let error = builder()
        .qemu(&script)
        .confinement(Confinement::Required)
        .start()
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), "confinement");
    assert!(
        error.to_string().contains("is a script for /bin/sh"),
        "{error}"
    );
    let vm = builder().qemu(&script).start().await.unwrap();
    let layers = vm.health().await.confinement.unwrap();
    assert!(layers.iter().all(|status| !status.is_active), "{layers:?}");
    vm.kill().await.unwrap();
}
