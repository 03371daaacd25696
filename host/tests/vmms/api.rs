//! Firecracker's API, if a caller enables it.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use vmcell::backend::{Firecracker, RunFolder};

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
    assert!(!RunFolder::base().join(vm.id()).join("api").exists());
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
