//! Missing, wrong or broken files and settings result in helpful errors.

use std::{
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use vmcell::{BootFailure, Error, VmBuilder};

use crate::builder;

async fn failure(builder: VmBuilder) -> Error {
    match builder.start().await {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_missing_vmm_is_named() {
    let nowhere = "/no/such/file";
    let error = failure(builder().qemu(nowhere).backend("qemu")).await;
    assert!(
        matches!(&error, Error::BackendUnavailable { name, .. } if name == "qemu"),
        "{error:?}"
    );
    assert!(error.to_string().contains(nowhere), "{error}");
    // If no backend can run a VM, the error has the reasons of all.
    match builder().qemu(nowhere).start().await {
        Ok(vm) => {
            let rejected_backends = vm.health().await.rejected_backends.unwrap();
            assert!(
                rejected_backends[0].reason.contains(nowhere),
                "{rejected_backends:?}"
            );
        }
        Err(error) => {
            assert_eq!(error.code(), "backend-unavailable", "{error:?}");
            for reason in [nowhere, "firecracker: ", "cloud_hypervisor: ", "process: "] {
                assert!(error.to_string().contains(reason), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_backend_that_nobody_knows_is_named_with_those_that_there_are() {
    let error = failure(builder().backend("xen")).await;
    assert_eq!(error.code(), "no-such-backend", "{error:?}");
    assert!(error.to_string().contains("qemu, firecracker"), "{error}");
}

#[tokio::test]
async fn a_missing_kernel_image_or_agent_is_named() {
    let nowhere = "/no/such/file";
    for broken in [
        builder().kernel(nowhere),
        builder().image(nowhere),
        builder().agent(nowhere),
    ] {
        let error = failure(broken).await;
        assert!(matches!(error, Error::BadFile { .. }), "{error:?}");
        assert!(error.to_string().contains(nowhere), "{error}");
    }
}

#[tokio::test]
async fn an_image_that_is_not_ext4_is_refused() {
    for contents in [&b""[..], b"#!/bin/sh\n", &[0; 8192]] {
        let mut image = tempfile::NamedTempFile::new().unwrap();
        image.write_all(contents).unwrap();
        let error = failure(builder().image(image.path())).await;
        assert!(error.to_string().contains("not an ext4 image"), "{error}");
    }
    let error = failure(builder().image("/")).await;
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

#[tokio::test]
async fn senseless_sizes_and_names_are_refused() {
    for broken in [
        builder().memory_mib(8),
        builder().memory_mib(0),
        builder().vcpus(0),
        builder().vcpus(17),
        builder().hostname(""),
        builder().hostname("a b"),
        vmcell::Vm::builder(),
    ] {
        let error = failure(broken).await;
        assert_eq!(error.code(), "invalid", "{error:?}");
    }
}

#[tokio::test]
async fn a_guest_that_never_answers_times_out_and_shows_its_console() {
    // It reaches its console in a fraction of the time of a boot.
    let started = Instant::now();
    builder().start().await.unwrap().kill().await.unwrap();
    let limit = Duration::from_secs((4 * started.elapsed()).as_secs() + 1);
    // Busybox as PID 1 acts as an ordinary init, not as the agent.
    let error = failure(builder().agent("/bin/busybox").boot_timeout(limit)).await;
    let Error::Boot { reason, console } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*reason, BootFailure::Timeout(limit));
    assert!(console.contains("/etc/init.d/rcS"), "{console}");
    let within = format!("within {} s", limit.as_secs());
    assert!(error.to_string().contains(&within), "{error}");
}

#[tokio::test]
async fn a_kernel_that_panics_shows_its_last_words() {
    let error = failure(builder().kernel_arguments("rdinit=/nowhere root=/dev/nothing")).await;
    let Error::Boot { reason, console } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*reason, BootFailure::Ended);
    assert!(console.contains("Kernel panic"), "{console}");
}

#[tokio::test]
async fn a_broken_file_system_is_named_on_the_console() {
    // A superblock with the right magic and nothing else.
    let mut image = tempfile::NamedTempFile::new().unwrap();
    let mut contents = vec![0; 1024 * 1024];
    contents[1024 + 0x38..1024 + 0x3a].copy_from_slice(&0xef53u16.to_le_bytes());
    image.write_all(&contents).unwrap();
    let error = failure(builder().image(image.path())).await;
    let text = error.to_string();
    assert!(
        text.contains("/dev/vda cannot be mounted as ext4"),
        "{text}"
    );
}

#[tokio::test]
async fn a_program_that_is_no_vmm_shows_its_complaint() {
    let error = failure(builder().qemu("/bin/ls")).await;
    let Error::Boot { reason, console } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*reason, BootFailure::Ended);
    assert!(console.contains("ls: "), "{console}");
}

#[tokio::test]
async fn a_scratch_folder_that_does_not_exist_is_an_error() {
    let error = failure(builder().scratch_folder("/no/such/folder")).await;
    assert_eq!(error.code(), "host", "{error:?}");
}

#[tokio::test]
async fn nothing_appears_in_the_scratch_folder() {
    let folder = tempfile::tempdir().unwrap();
    let vm = builder()
        .scratch_folder(folder.path())
        .start()
        .await
        .unwrap();
    let count = |path: &Path| std::fs::read_dir(path).unwrap().count();
    assert_eq!(count(folder.path()), 0);
    vm.exec(["sh", "-c", "echo x > /file; sync"]).await.unwrap();
    assert_eq!(count(folder.path()), 0);
    vm.kill().await.unwrap();
    assert_eq!(count(folder.path()), 0);
}
