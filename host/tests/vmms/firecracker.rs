//! The Firecracker backend.

use vmcell::{
    BootFailure, End, Error, LinkKind,
    backend::{Backend as _, Firecracker},
};

use crate::{Fake, boots_and_stops, builder};

fn fake() -> Fake {
    Fake::new("firecracker", "Firecracker v1.14.4")
}

#[tokio::test]
async fn a_vm_boots_from_a_config_file_and_ends_when_its_guest_powers_off() {
    let fake = fake();
    let firecracker = Firecracker::at(fake.path("firecracker"));
    boots_and_stops(builder(firecracker), "firecracker").await;
}

#[tokio::test]
async fn it_dies_with_the_last_handle_and_its_folder_goes() {
    let fake = fake();
    let vm = builder(Firecracker::at(fake.path("firecracker")))
        .start()
        .await
        .unwrap();
    let folder = vmcell::backend::RunFolder::base().join(vm.id());
    assert!(folder.join("vmm/v").exists());
    vm.kill().await.unwrap();
    assert_eq!(vm.ended().await.reason, End::Killed);
    assert!(!folder.exists());
}

#[tokio::test]
async fn its_complaint_is_shown_when_it_does_not_start() {
    let fake = fake();
    let program = fake.write("broken", "#!/bin/sh\necho 'no such kernel' >&2; exit 1\n");
    let started = builder(Firecracker::at(program)).start().await;
    match started {
        Err(Error::Boot { reason, console }) => {
            assert_eq!(reason, BootFailure::Ended);
            assert!(console.contains("no such kernel"), "{console}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_version_with_a_known_hole_is_never_chosen() {
    let fake = Fake::new("firecracker", "Firecracker v1.14.3");
    let health = Firecracker::at(fake.path("firecracker")).health();
    assert!(!health.is_available, "{health:?}");
    // Without KVM, that is the reason that is reported first.
    let reason = health.reason;
    assert!(
        reason.contains("CVE-2026-5747") || reason.contains("KVM"),
        "{reason}"
    );
}

#[tokio::test]
async fn what_it_cannot_do_is_refused_by_name() {
    let fake = fake();
    let firecracker = || builder(Firecracker::at(fake.path("firecracker")));
    let refusal = |error: Error| {
        assert_eq!(error.code(), "invalid", "{error:?}");
        error.to_string()
    };
    let error = firecracker()
        .link(LinkKind::Serial)
        .start()
        .await
        .unwrap_err();
    assert!(refusal(error).contains("has no link serial"));
    let emulated = firecracker().acceleration(vmcell::Acceleration::Tcg);
    let error = emulated.start().await.unwrap_err();
    assert!(refusal(error).contains("cannot emulate"));
}
