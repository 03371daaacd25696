//! Backends and links of a VM.

use crate::vmcell::Vmcell;

#[test]
fn a_command_runs_without_a_vm_only_if_that_is_allowed_and_the_result_says_so() {
    let backend = ["--backend", "process"];
    let ended = Vmcell::run(backend, ["true"]).finish();
    assert_eq!(ended.code(), 125);
    assert!(ended.stderr.contains("host-compat"), "{ended:?}");

    let allowed = ["--backend", "process", "--allow-host-compat", "--json"];
    let ended = Vmcell::run(allowed, ["echo", "hello"]).finish();
    if ended.code() == 125 && ended.stdout().contains("backend-unavailable") {
        eprintln!("skipped: {}", ended.stdout());
        return;
    }
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.stderr.contains("security boundary"), "{ended:?}");
    let result = ended.json();
    assert_eq!(result["stdout"], "hello\n");
    let warning = result["warnings"][0].as_str().unwrap();
    assert!(warning.contains("security boundary"), "{warning}");
}

#[test]
fn a_backend_or_link_that_does_not_exist_is_named_with_those_that_do() {
    let ended = Vmcell::run(["--backend", "xen"], ["true"]).finish();
    assert_eq!(ended.code(), 125);
    assert!(ended.stderr.contains("qemu"), "{ended:?}");
    let ended = Vmcell::run(["--link", "rope"], ["true"]).finish();
    assert_eq!(ended.code(), 2);
    assert!(ended.stderr.contains("hybrid-vsock"), "{ended:?}");
}

#[test]
fn a_command_runs_over_vsock() {
    let ended = Vmcell::run(["--link", "hybrid-vsock"], ["echo", "hello"]).finish();
    if ended.stderr.contains("vhost-device-vsock not found") {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    assert_eq!(ended.stdout(), "hello\n", "{ended:?}");
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
}
