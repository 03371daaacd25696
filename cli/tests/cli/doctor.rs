//! `vmcell doctor`.

use std::{os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use serde_json::{Value, json};

use crate::vmcell::Vmcell;

/// Returns the name, status and detail of each finding.
fn findings(report: &Value) -> Vec<[&str; 3]> {
    let list = report["findings"].as_array().unwrap();
    list.iter()
        .map(|finding| ["name", "status", "detail"].map(|key| finding[key].as_str().unwrap()))
        .inspect(|finding| assert!(!finding.contains(&""), "{finding:?}"))
        .collect()
}

#[test]
fn a_machine_with_everything_is_able() {
    let ended = Vmcell::new(["doctor"]).finish();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.stdout().ends_with("VMs can run here.\n"), "{ended:?}");
    assert!(!ended.stdout().contains('\x1b'), "no colours in a pipe");
    assert_eq!(ended.stderr, "");
    for name in [
        "qemu",
        "kernel",
        "acceleration",
        "environment",
        "confinement",
    ] {
        let mut lines = ended.stdout().lines();
        let found = lines.any(|line| line.split_whitespace().nth(1) == Some(name));
        assert!(found, "{name}: {ended:?}");
    }

    let ended = Vmcell::new(["doctor", "--json"]).finish();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(report["able"], json!(true));
    let names: Vec<_> = findings(&report)
        .into_iter()
        .map(|[name, status, _]| {
            assert!(["good", "poor", "absent"].contains(&status), "{report}");
            name
        })
        .collect();
    let expected = [
        "qemu",
        "firecracker",
        "cloud_hypervisor",
        "process",
        "kernel",
        "acceleration",
        "link vsock",
        "link hybrid-vsock",
        "confinement namespaces",
        "confinement user",
        "confinement landlock",
        "confinement seccomp",
        "confinement capabilities",
        "confinement limits",
        "confinement cgroup",
        "environment",
    ];
    assert_eq!(names, expected);
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
}

#[test]
fn a_qemu_that_hangs_in_the_middle_of_its_version_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let hanging = folder.path().join("qemu");
    std::fs::write(&hanging, "#!/bin/sh\nprintf Q\nsleep 100000\n").unwrap();
    let executable = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&hanging, executable).unwrap();
    let doctor = Vmcell::new(["doctor", "--json"]).env("VMCELL_QEMU", &hanging);
    let ended = doctor.finish();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let [name, _, detail] = findings(&report)[0];
    assert_eq!(name, "qemu");
    assert!(detail.ends_with("does not run"), "{detail}");
}

#[test]
fn a_machine_that_lacks_something_is_told_what_to_do() {
    let lacking = |arguments: &[&str]| {
        let cache = tempfile::tempdir().unwrap();
        Vmcell::new(arguments)
            .env("PATH", "/nonexistent")
            .env("XDG_CACHE_HOME", cache.path())
            .env_remove("VMCELL_QEMU")
            .env_remove("VMCELL_KERNEL")
            .finish()
    };
    let ended = lacking(&["doctor"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    let text = ended.stdout();
    assert!(text.contains("apt-get install qemu-system-x86"), "{text}");
    assert!(text.contains("kernel-config/build.sh"), "{text}");
    for variable in ["VMCELL_FIRECRACKER", "VMCELL_CLOUD_HYPERVISOR"] {
        assert!(text.contains(variable), "{text}");
    }
    assert!(text.ends_with("VMs cannot run here yet.\n"), "{text}");

    let ended = lacking(&["doctor", "--json"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(report["able"], json!(false));
    for [name, status, detail] in findings(&report) {
        match name {
            "qemu" | "kernel" => assert_eq!(status, "missing", "{detail}"),
            _ => assert_ne!(status, "missing", "{name}: {detail}"),
        }
    }
}

#[test]
fn a_firecracker_with_a_known_hole_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("firecracker");
    std::fs::write(&program, "#!/bin/sh\necho Firecracker v1.14.3\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&program, executable).unwrap();
    let ended = Vmcell::new(["doctor", "--json"])
        .env("VMCELL_FIRECRACKER", &program)
        .finish();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let findings = findings(&report);
    let [_, status, detail] = findings
        .iter()
        .find(|found| found[0] == "firecracker")
        .unwrap();
    assert_eq!(*status, "poor");
    assert!(
        detail.contains("1.14.3") && detail.contains("CVE-2026-5747"),
        "{detail}"
    );
}

/// What the shell of a guest does to have a cgroup that it may divide, as systemd gives one to
/// each user, and to examine that.
const IN_A_CGROUP: &str = "
for cgroup in /sys/fs/cgroup /sys/fs/cgroup/vmcell; do
    echo '+cpu +memory +pids' > $cgroup/cgroup.subtree_control
done
exec unshare -m sh -ec '
    umount -l /sys/fs/cgroup
    mount -t cgroup2 none /sys/fs/cgroup
    mkdir /sys/fs/cgroup/ours
    echo $$ > /sys/fs/cgroup/ours/cgroup.procs
    echo \"+cpu +memory +pids\" > /sys/fs/cgroup/cgroup.subtree_control
    ./ld-linux-x86-64.so.2 --library-path . ./vmcell doctor || true
    ls -d /sys/fs/cgroup/*/'
";

/// This machine may have no cgroup with these limits, but every guest has.
#[test]
fn a_cgroup_that_is_delegated_confines_too_and_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_vmcell");
    std::fs::copy(program, folder.path().join("vmcell")).unwrap();
    let libraries = Command::new("ldd").arg(program).output().unwrap();
    let libraries = String::from_utf8(libraries.stdout).unwrap();
    for path in libraries
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        let name = Path::new(path).file_name().unwrap();
        std::fs::copy(path, folder.path().join(name)).unwrap();
    }
    let folder = folder.path().to_str().unwrap();
    let options = ["run", "--push", folder, "--", "sh", "-c", IN_A_CGROUP];
    let ended = Vmcell::new(options).finish();
    let text = ended.stdout();
    let cgroup = text
        .lines()
        .find(|line| line.contains("confinement cgroup"));
    assert_eq!(
        cgroup
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .as_deref(),
        Some("good confinement cgroup 3072 MiB of memory, 512 threads, 200% of a processor"),
        "{ended:?}"
    );
    assert!(
        text.ends_with("VMs cannot run here yet.\n/sys/fs/cgroup/ours/\n"),
        "{ended:?}"
    );
}
