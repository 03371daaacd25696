//! Errors: messages that help, and exit codes.

use std::fs;

use crate::vmcell::Vmcell;

#[test]
fn a_command_that_does_not_exist_is_127() {
    let ended = Vmcell::run([], ["no-such-program"]).finish();
    ended.assert_failed(127, "did not start");
    for words in ["no-such-program", "No such file"] {
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
}

#[test]
fn a_command_that_is_no_program_is_126() {
    let ended = Vmcell::run([], ["/etc/passwd"]).finish();
    ended.assert_failed(126, "Permission denied");
}

#[test]
fn an_environment_that_is_not_ext4_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image.ext4");
    fs::write(&image, "not an image").unwrap();
    let ended = Vmcell::run([image.to_str().unwrap()], ["true"]).finish();
    ended.assert_failed(125, "is not an ext4 image");
    assert!(ended.stderr.contains(image.to_str().unwrap()), "{ended:?}");

    let ended = Vmcell::run(["/no/such/image"], ["true"]).finish();
    ended.assert_failed(125, "/no/such/image: No such file");
}

#[test]
fn too_little_memory_comes_with_advice() {
    let ended = Vmcell::run(["--mem-mib", "8"], ["true"]).finish();
    ended.assert_failed(125, "choose at least 64");
}

#[test]
fn too_many_processors_come_with_advice() {
    let ended = Vmcell::run(["--vcpu-count", "1000"], ["true"]).finish();
    ended.assert_failed(125, "choose 1 to 16");
}

#[test]
fn without_qemu_it_says_what_to_install() {
    let ended = Vmcell::run([], ["true"])
        .env("PATH", "/nonexistent")
        .env_remove("VMCELL_QEMU")
        .finish();
    ended.assert_failed(125, "`apt-get install qemu-system-x86`");
}

#[test]
fn without_a_kernel_it_says_how_to_get_one() {
    // A cache with the image, but without the kernel.
    let cache = tempfile::tempdir().unwrap();
    vmcell_rootfs::recipe::base().cached().unwrap();
    let images = vmcell_rootfs::Cache::user().unwrap();
    fs::create_dir(cache.path().join("vmcell")).unwrap();
    std::os::unix::fs::symlink(images.folder(), cache.path().join("vmcell/images")).unwrap();
    let ended = Vmcell::run([], ["true"])
        .env("XDG_CACHE_HOME", cache.path())
        .env_remove("VMCELL_KERNEL")
        .finish();
    ended.assert_failed(125, "the guest kernel not found: build it with");

    let ended = Vmcell::run([], ["true"])
        .env("VMCELL_KERNEL", "/no/such/kernel")
        .finish();
    ended.assert_failed(125, "kernel /no/such/kernel: there is no such file");
}

#[test]
fn a_vmm_that_does_not_work_shows_its_complaint() {
    let ended = Vmcell::run([], ["true"])
        .env("VMCELL_QEMU", "/bin/ls")
        .finish();
    ended.assert_failed(125, "ls: ");
}

#[test]
fn wrong_arguments_are_explained() {
    for arguments in [
        &["run"][..],
        &["run", "base"],
        &["run", "--env", "NOVALUE", "--", "true"],
        &["run", "--mem-mib", "lots", "--", "true"],
        &["run", "--timeout-seconds", "-1", "--", "true"],
        &["run", "--timeout-seconds", "0", "--", "true"],
        &["run", "--timeout-seconds", "1e400", "--", "true"],
        &["run", "--memory-max", "0", "--", "true"],
        &["run", "--memory-max", "64x", "--", "true"],
        &["run", "--max-output-bytes", "-1", "--", "true"],
        &["run", "--pids-max", "0", "--", "true"],
        &["run", "--cpus", "NaN", "--", "true"],
        &["run", "--create-cwd", "--", "true"],
        &["run", "--tag", "12", "--", "true"],
        &["exec", "web"],
        &["exec", "--", "true"],
        &["exec", "web", "-d", "--stdin", "none", "--", "true"],
        &["logs", "web"],
        &["logs", "web", "pid:x"],
        &["kill"],
        &["kill", "web", "--signal", "TERM"],
        &["kill", "web", "main", "--signal", "NOSUCH"],
        &["run", "--pull", "nothing", "--", "true"],
        &["run", "--pull", "=x", "--", "true"],
        &["cp", "web:x"],
        &["cp", ":x", "y"],
        &["cp", "x", "web:y", "--owner", "a", "--keep-owners"],
        &["cp", "x", "web:y", "--limit-bytes", "-1"],
        &["ls", "web", "--depth", "0"],
        &["cat", "web"],
        &["cat", "web", "x", "--offset", "-1"],
        &["stat", "web"],
        &["patch", "web", "--fuzz", "-1"],
        &["diff", "web", "--save", "x", "--against", "y"],
        &["fly"],
    ] {
        let ended = Vmcell::new(arguments).finish();
        assert_eq!(ended.code(), 2, "{ended:?}");
        assert!(ended.stderr.contains("try '--help'"), "{ended:?}");
    }
}
