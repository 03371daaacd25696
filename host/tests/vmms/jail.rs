//! Firecracker in a jail. The fake jailer sets the folder and the cgroup, but
//! not the user.

use std::{
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use vmcell::{
    End, Vm,
    backend::{Firecracker, Jail},
};

use crate::{Fake, api::query_state, builder, fake};

/// A fake jailer that uses the given root folder and joins the cgroup.
const JAILER: &str = r#"#!/bin/sh
while test "$1" != --; do
    case $1 in
        --id) id=$2 ;;
        --exec-file) program=$2 ;;
        --chroot-base-dir) base=$2 ;;
        --parent-cgroup) cgroup=$2 ;;
    esac
    shift 2
done
shift
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    test -e $hierarchy/$cgroup && echo $$ > $hierarchy/$cgroup/cgroup.procs
done
export VMCELL_FAKE_VMM_ROOT=$base/${program##*/}/$id/root
exec $program --id=$id "$@"
"#;

fn can_jail() -> bool {
    let hierarchies = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let has_cgroups = hierarchies
        .iter()
        .any(|path| Path::new(path).join("cgroup.procs").exists());
    has_cgroups && rustix::process::geteuid().is_root()
}

fn jailed(fake: &Fake, base: &Path) -> Firecracker {
    let jailer = fake.write("jailer", JAILER);
    let jail = Jail::new(65_534, 65_534).folder(base).program(jailer);
    Firecracker::at(fake.path("firecracker")).jailed(jail)
}

#[tokio::test]
async fn a_jailed_vm_has_its_files_in_its_root_and_leaves_nothing() {
    assert_eq!(fake::ROOT, "VMCELL_FAKE_VMM_ROOT", "as the jailer says");
    if !can_jail() {
        println!("skipped: only root can jail, and where there is cgroup2");
        return;
    }
    let fake = Fake::new("firecracker", "Firecracker v1.14.4");
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let base = folder.path().join("jails");
    let firecracker = jailed(&fake, &base);
    let vm = builder(firecracker).start().await.unwrap();
    assert!(vm.health().await.is_healthy());
    let root = base.join(vm.id()).join("firecracker/vm/root");
    for name in ["kernel", "initramfs", "disk", "config.json", "v", "v_1025"] {
        assert!(root.join(name).exists(), "{name}");
    }
    assert_eq!(root.join("disk").metadata().unwrap().uid(), 65_534);
    let cgroups = || {
        let name = format!("vmcell-{}", vm.id());
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
            .map(|path| Path::new(path).join(&name).exists())
    };
    assert!(cgroups().contains(&true));
    vm.stop().await.unwrap();
    assert_eq!(vm.ended().await.reason, End::Stopped);
    assert!(!root.exists());
    assert!(!cgroups().contains(&true));
}

#[tokio::test]
async fn the_api_of_a_jailed_vm_is_in_its_root() {
    if !can_jail() {
        println!("skipped: only root can jail, and where there is cgroup2");
        return;
    }
    let fake = Fake::new("firecracker", "Firecracker v1.14.4");
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let base = folder.path().join("jails");
    let firecracker = jailed(&fake, &base).with_api();
    let vm = builder(firecracker.clone()).start().await.unwrap();
    let api = firecracker.api_socket(vm.id()).unwrap();
    assert_eq!(api, base.join(vm.id()).join("firecracker/vm/root/api"));
    assert!(query_state(&api).ends_with(fake::STATE));
    let mode = base.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    vm.kill().await.unwrap();
    assert!(!api.exists());
}

#[tokio::test]
async fn a_jailed_vm_is_saved_from_its_root_and_restored_in_another() {
    if !can_jail() {
        println!("skipped: only root can jail, and where there is cgroup2");
        return;
    }
    let fake = Fake::new("firecracker", "Firecracker v1.14.4");
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let base = folder.path().join("jails");
    let root = |vm: &Vm| base.join(vm.id()).join("firecracker/vm/root");
    let saved = folder.path().join("saved");
    let firecracker = jailed(&fake, &base).with_api();
    let vm = builder(firecracker.clone()).start().await.unwrap();
    vm.snapshot(&saved).await.unwrap();
    assert!(vm.health().await.is_healthy());
    for name in ["saved-state", "saved-memory"] {
        assert!(!root(&vm).join(name).exists(), "{name}");
    }
    for name in ["state", "memory", "disk"] {
        let file = saved.join(name).metadata().unwrap();
        assert_eq!((file.uid(), file.mode() & 0o7777), (0, 0o600), "{name}");
    }
    let restoring = builder(firecracker).snapshot(&saved).start().await;
    let copy = restoring.unwrap();
    assert!(copy.health().await.is_healthy());
    for name in ["state", "memory", "disk"] {
        let file = root(&copy).join(name).metadata().unwrap();
        assert_eq!((file.uid(), file.mode() & 0o7777), (65_534, 0o600));
    }
    assert!(!root(&copy).join("config.json").exists());
    // What was in a jail is not restored outside.
    let free = Firecracker::at(fake.path("firecracker")).with_api();
    let error = builder(free).snapshot(&saved).start().await.unwrap_err();
    assert!(
        error.to_string().contains("in a jail, here it is"),
        "{error}"
    );
    for vm in [vm, copy] {
        vm.stop().await.unwrap();
        assert!(!root(&vm).exists());
    }
}

#[tokio::test]
async fn what_a_jailed_vmm_saves_cannot_lead_out_of_its_root() {
    if !can_jail() {
        println!("skipped: only root can jail, and where there is cgroup2");
        return;
    }
    for fault in ["symlink", "size"] {
        let fake = Fake::with_fault("firecracker", "Firecracker v1.14.4", fault);
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let base = folder.path().join("jails");
        let vm = builder(jailed(&fake, &base).with_api()).start().await;
        let vm = vm.unwrap();
        let saved = folder.path().join("saved");
        let error = vm.snapshot(&saved).await.unwrap_err().to_string();
        assert!(error.contains("save the VM"), "{error}");
        assert!(!saved.exists());
        assert!(vm.health().await.is_healthy());
        let root = base.join(vm.id()).join("firecracker/vm/root");
        assert!(!root.join("saved-memory").exists());
        assert!(root.join("saved-state").symlink_metadata().is_err());
        vm.kill().await.unwrap();
    }
}
