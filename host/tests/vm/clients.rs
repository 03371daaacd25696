//! Programs that attach to a VM that another program owns.
//!
//! Here they are tasks of one program, which makes no difference: a client
//! only has a socket.

use std::{os::unix::process::CommandExt, time::Duration};

use vmcell::{Cause, Command, End, Error, ExecEvent, ReadFrom, Signal, Vm, files::ManifestOptions};

use crate::{builder, processes::VmmProcess, start};

#[tokio::test]
async fn a_client_finds_a_vm_uses_it_and_leaves_it_alone() {
    let id = format!("visited-{}", std::process::id());
    let vm = builder().id(&id).start().await.unwrap();
    let taken = builder().id(&id).start().await.unwrap_err();
    assert!(matches!(taken, Error::IdTaken { .. }), "{taken:?}");

    let list = Vm::list().await.unwrap();
    let info = list.iter().find(|info| info.id == id).unwrap();
    assert_eq!(info.owner_pid, Some(std::process::id()));
    assert_eq!(info.details().unwrap().memory_mib, 128);

    let owners = vm.spawn(Command::shell("echo mine; sleep 1000").tag("owners"));
    let owners = owners.await.unwrap();
    let client = Vm::attach(&id).await.unwrap();
    assert!(client.health().await.is_healthy());
    let output = client
        .exec_with(["tee", "/dev/stderr"], |command| command.stdin("hello"))
        .await
        .unwrap();
    assert_eq!(
        (output.stdout, output.stderr),
        (b"hello".to_vec(), b"hello".to_vec())
    );
    let mut log = client
        .processes()
        .attach("owners", ReadFrom::Start)
        .unwrap();
    assert_eq!(
        log.next().await.unwrap(),
        Some(ExecEvent::Stdout("mine\n".into()))
    );
    let clients = client.spawn(Command::from_argv(["sleep", "1000"]).tag("clients"));
    clients.await.unwrap();

    // When a client leaves, its foreground commands end, and nothing else.
    let mut foreground = client
        .exec_stream(Command::from_argv(["sleep", "1000"]).tag("foreground"))
        .unwrap();
    foreground.next().await.unwrap();
    let process = vm.processes().get("foreground").await.unwrap().unwrap();
    drop((client, log, foreground));
    assert_eq!(process.wait().await.unwrap().cause, Cause::Killed);
    owners.signal(Signal::NULL).await.unwrap();
    vm.processes()
        .signal("clients", Signal::NULL)
        .await
        .unwrap();

    vm.kill().await.unwrap();
    let error = Vm::attach(&id).await.unwrap_err();
    assert!(matches!(error, Error::NoSuchVm { .. }), "{error:?}");
    // The id is free as soon as the VM is gone.
    builder().id(&id).start().await.unwrap();
}

#[tokio::test]
async fn what_only_the_owner_can_do_is_an_error_for_a_client() {
    let vm = start().await;
    let client = Vm::attach(vm.id()).await.unwrap();
    let options = ManifestOptions::new();
    let manifest = client
        .files()
        .manifest("/etc", options.clone())
        .await
        .unwrap();
    let refused = [
        client.console().map(drop),
        client.reconnect(),
        client.set_baseline(&manifest),
    ];
    for error in refused {
        let error = error.unwrap_err();
        assert!(matches!(error, Error::NotOwner { .. }), "{error:?}");
    }
    assert!(client.baseline().await.unwrap().is_none());
    vm.set_baseline(&manifest).unwrap();
    assert_eq!(client.baseline().await.unwrap(), Some(manifest));
    assert!(client.health().await.rejected_backends.is_none());
    assert!(vm.health().await.rejected_backends.is_some());
}

#[tokio::test]
async fn megabytes_go_to_a_client_while_the_owner_works_and_links_break() {
    let vm = start().await;
    let client = Vm::attach(vm.id()).await.unwrap();
    let bytes: Vec<u8> = (0..3_000_000u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let copying = client.exec_with(["cat"], |command| command.stdin(bytes.clone()));
    let working = async {
        for _ in 0..20 {
            assert!(vm.exec(["true"]).await.unwrap().success());
            vm.reconnect().unwrap();
        }
    };
    let (output, ()) = tokio::join!(copying, working);
    assert!(output.unwrap().stdout == bytes);
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_nobody_else() {
    let vm = start().await;
    let client = Vm::attach(vm.id()).await.unwrap();
    let mut flood = client.exec_stream(Command::new("yes")).unwrap();
    flood.next().await.unwrap();
    for _ in 0..30 {
        assert!(vm.exec(["true"]).await.unwrap().success());
        assert!(client.exec(["true"]).await.unwrap().success());
    }
    drop(flood);
}

#[tokio::test]
async fn a_client_can_end_the_vm_and_hears_when_it_ends() {
    for stop in [true, false] {
        let vm = start().await;
        let process = VmmProcess::of(&vm);
        let client = Vm::attach(vm.id()).await.unwrap();
        let bystander = Vm::attach(vm.id()).await.unwrap();
        let running = bystander.exec(["sleep", "1000"]);
        let end = if stop { End::Stopped } else { End::Killed };
        let ending = async {
            match stop {
                true => client.stop().await.unwrap(),
                false => client.kill().await.unwrap(),
            }
        };
        let (ran, ()) = tokio::join!(running, ending);
        let gone = |error: &Error| matches!(error, Error::Gone(_));
        match ran {
            Err(error) => assert!(gone(&error), "{error:?}"),
            // It may have ended on SIGTERM before the VM did.
            Ok(output) => assert!(stop && !output.success()),
        }
        assert!(process.ends_within(Duration::ZERO));
        assert_eq!(vm.ended().await.reason, end);
        let error = bystander.exec(["true"]).await.unwrap_err();
        assert!(gone(&error), "{error:?}");
    }
}

#[tokio::test]
async fn an_unlisted_vm_cannot_be_found_and_a_bad_id_is_refused() {
    let vm = builder().unlisted().start().await.unwrap();
    let list = Vm::list().await.unwrap();
    assert!(list.iter().all(|info| info.id != vm.id()));
    let error = Vm::attach(vm.id()).await.unwrap_err();
    assert!(matches!(error, Error::NoSuchVm { .. }), "{error:?}");
    for id in ["", "a b", "../x", "-x"] {
        let error = builder().id(id).start().await.unwrap_err();
        assert_eq!(error.code(), "invalid", "{id}");
        let error = Vm::attach(id).await.unwrap_err();
        assert!(matches!(error, Error::NoSuchVm { .. }), "{error:?}");
    }
}

/// Environment variable: the VM that [`strangers_attempt`] tries to reach.
const TARGET_VM: &str = "VMCELL_TEST_STRANGERS_GOAL";

#[tokio::test]
async fn a_stranger_gets_not_a_word() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not tried: only root can pose as somebody else");
        return;
    }
    let vm = start().await;
    let target = vm.id().to_owned();
    // This program again, as another user, through a path that every user can
    // access.
    let attempt = tokio::task::spawn_blocking(move || {
        std::process::Command::new("/proc/self/exe")
            .args(["--exact", "clients::strangers_attempt", "--nocapture"])
            .env(TARGET_VM, target)
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap()
    });
    let attempt = attempt.await.unwrap();
    let said = String::from_utf8_lossy(&attempt.stdout);
    assert!(attempt.status.success(), "{said}");
    assert!(said.contains("the stranger learned nothing"), "{said}");
    assert!(vm.exec(["true"]).await.unwrap().success());
}

/// Child process of the test above: does nothing when run alone.
#[tokio::test]
async fn strangers_attempt() {
    use std::{
        io::Read,
        os::{
            linux::net::SocketAddrExt,
            unix::net::{SocketAddr, UnixStream},
        },
    };
    let Some(target) = std::env::var_os(TARGET_VM) else {
        return;
    };
    let target = target.to_str().unwrap();
    let list = Vm::list().await.unwrap();
    assert!(list.iter().all(|info| info.id != target));
    assert!(Vm::attach(target).await.is_err());
    // Without the library: the owner closes the connection without sending
    // anything.
    let address = SocketAddr::from_abstract_name(format!("vmcell/0/{target}")).unwrap();
    let mut socket = UnixStream::connect_addr(&address).unwrap();
    let mut heard = Vec::new();
    let _ = socket.read_to_end(&mut heard);
    assert_eq!(heard, b"");
    println!("the stranger learned nothing");
}
