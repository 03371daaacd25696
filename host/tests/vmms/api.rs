//! The API of a VMM, if a caller enables it.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use vmcell::{
    VmBuilder, VmState,
    backend::{Backend as _, CloudHypervisor, Feature, Firecracker, RunFolder},
};

use crate::{Fake, builder, fake};

/// Environment variable: the path of the fake, for the program that is killed.
const PROGRAM: &str = "VMCELL_TEST_FIRECRACKER";

/// How long a reply may take.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

fn firecracker() -> Fake {
    Fake::new("firecracker", "Firecracker v1.14.4")
}

/// Queries the state of the VM over HTTP.
pub(crate) fn query_state(api: &Path) -> String {
    let mut socket = UnixStream::connect(api).unwrap();
    socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn there_is_none_unless_it_is_asked_for() {
    let fake = firecracker();
    let firecracker = Firecracker::at(fake.path("firecracker"));
    let vm = builder(firecracker).start().await.unwrap();
    assert!(!RunFolder::base().join(vm.id()).join("vmm/api").exists());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn each_vm_has_its_own_for_its_user_alone_until_it_ends() {
    let fake = firecracker();
    let firecracker = Firecracker::at(fake.path("firecracker")).with_api();
    let one = builder(firecracker.clone()).start().await.unwrap();
    let other = builder(firecracker.clone()).start().await.unwrap();
    let api = |vm: &vmcell::Vm| firecracker.api_socket(vm.id()).unwrap();
    assert_ne!(api(&one), api(&other));
    for vm in [&one, &other] {
        let answer = query_state(&api(vm));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.ends_with(fake::STATE), "{answer}");
        let folder = api(vm).parent().unwrap().metadata().unwrap();
        assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    }
    one.stop().await.unwrap();
    assert!(!api(&one).exists());
    assert!(query_state(&api(&other)).ends_with(fake::STATE));
    other.kill().await.unwrap();
    assert!(!api(&other).exists());
}

/// The child process of the test below.
#[tokio::test]
async fn a_program_that_starts_one_and_waits() {
    let Some(program) = std::env::var_os(PROGRAM) else {
        return;
    };
    let firecracker = Firecracker::at(program).with_api();
    let vm = builder(firecracker.clone()).start().await.unwrap();
    let api = firecracker.api_socket(vm.id()).unwrap();
    println!("\nstarted {}", api.display());
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[tokio::test]
async fn what_a_killed_program_left_of_it_the_next_start_removes() {
    let fake = firecracker();
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["api::a_program_that_starts_one_and_waits", "--exact"])
        .arg("--nocapture")
        .env(PROGRAM, fake.path("firecracker"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(program.stdout.take().unwrap());
    let mut lines = said.lines().map(Result::unwrap);
    let started = lines.find(|line| line.starts_with("started "));
    let api = started.unwrap().replace("started ", "");
    assert!(query_state(Path::new(&api)).ends_with(fake::STATE));
    program.kill().unwrap();
    program.wait().unwrap();
    let firecracker = Firecracker::at(fake.path("firecracker"));
    let next = builder(firecracker).start().await.unwrap();
    assert!(!fs::exists(&api).unwrap());
    next.kill().await.unwrap();
}

/// Pauses and resumes a VM, and stops it while it is paused.
async fn pauses_and_resumes(builder: VmBuilder) {
    let vm = builder.start().await.unwrap();
    for _ in 0..2 {
        vm.pause().await.unwrap();
        assert_eq!(vm.state(), VmState::Paused);
        vm.resume().await.unwrap();
        assert!(vm.health().await.is_healthy());
    }
    vm.pause().await.unwrap();
    vm.stop().await.unwrap();
}

#[tokio::test]
async fn a_vm_of_firecracker_is_paused_through_it() {
    let fake = firecracker();
    let firecracker = Firecracker::at(fake.path("firecracker"));
    pauses_and_resumes(builder(firecracker.clone().with_api())).await;
    let vm = builder(firecracker.clone()).start().await.unwrap();
    let error = vm.pause().await.unwrap_err();
    assert_eq!(error.code(), "backend-lacks", "{error}");
    assert!(error.to_string().contains("`with_api`"), "{error}");
    vm.kill().await.unwrap();
    // Where there is KVM, the health tells them apart.
    for (backend, can_pause) in [(firecracker.clone(), false), (firecracker.with_api(), true)] {
        let health = backend.health();
        if health.is_available {
            assert_eq!(health.features.contains(&Feature::Pause), can_pause);
        }
    }
}

#[tokio::test]
async fn a_vm_of_cloud_hypervisor_is_paused_through_it() {
    let fake = Fake::new("cloud-hypervisor", "cloud-hypervisor v52.0");
    let backend = CloudHypervisor::at(fake.path("cloud-hypervisor")).with_api();
    let kernel = fake.write("vmlinux", "\x7fELF");
    pauses_and_resumes(builder(backend).kernel(kernel)).await;
}

#[tokio::test]
async fn a_vmm_that_refuses_says_why_and_the_vm_goes_on() {
    let fake = firecracker();
    let firecracker = Firecracker::at(fake.path("firecracker")).with_api();
    let vm = builder(firecracker.clone()).start().await.unwrap();
    // Behind the library's back, so that the VMM refuses its request.
    let api = firecracker.api_socket(vm.id()).unwrap();
    let change = |state: &str| {
        let mut socket = UnixStream::connect(&api).unwrap();
        let body = format!(r#"{{"state":"{state}"}}"#);
        let length = body.len();
        write!(
            socket,
            "PATCH /vm HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        BufReader::new(socket).lines().next().unwrap().unwrap();
    };
    change("Paused");
    let error = vm.pause().await.unwrap_err();
    assert_eq!(error.code(), "control", "{error}");
    assert!(error.to_string().contains("replies 400: twice"), "{error}");
    assert_eq!(vm.state(), VmState::Running);
    change("Resumed");
    assert!(vm.health().await.is_healthy());
    vm.kill().await.unwrap();
}
