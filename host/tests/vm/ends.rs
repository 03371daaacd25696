//! How VMs end (clean, cut or crashed), and the state of a persistent disk
//! afterwards.

use std::{os::unix::process::ExitStatusExt as _, path::Path, time::Duration};

use vmcell::{
    Command, End, EndKind, Error, ExecEvent, ExecStream, LinkKind, Vm, VmEnd, VmState, disk::Disk,
};

use crate::{
    builder,
    disk::{builder_on, new_disk, open_disk, run},
    processes::VmmProcess,
};

/// A timeout for what happens at once, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Opens a disk and checks that it is clean. Fails while a VM uses the disk.
fn clean_disk(path: &Path) -> Disk {
    let disk = open_disk(path).unwrap();
    assert!(disk.info().clean, "{:?}", disk.info());
    disk
}

#[tokio::test]
async fn a_power_cut_costs_at_most_two_seconds_of_writes() {
    let (_folder, path) = new_disk();
    let vm = builder_on(&path).start().await.unwrap();
    let vmm = VmmProcess::of(&vm);
    // Writes a new file, and overwrites a block of the backing image in place:
    // the VMM keeps the location of that block in its own memory. The two
    // seconds are what is tested, so the test waits for them, by the guest's
    // clock.
    let write = "echo new >/root/new && printf X | dd of=/etc/passwd conv=notrunc 2>/dev/null && \
                 sleep 2";
    run(&vm, write).await;
    vmm.kill();
    assert!(vmm.ends_within(TIMEOUT));
    let disk = open_disk(&path).unwrap();
    assert!(!disk.info().clean);
    assert_eq!(disk.read("root/new").unwrap(), b"new\n");
    assert!(disk.read("etc/passwd").unwrap().starts_with(b"X"));
    let end = vm.ended().await;
    assert_eq!((end.reason, end.kind()), (End::Died, EndKind::Crashed));
}

#[tokio::test]
async fn killing_the_process_that_writes_back_does_not_end_the_writing_back() {
    let (_folder, path) = new_disk();
    let vm = builder_on(&path).start().await.unwrap();
    let vmm = VmmProcess::of(&vm);
    // Kills all children of PID 1 except the shell itself, until there is a new
    // one.
    let kill = r#"
        children() { grep -l '^PPid:.1$' /proc/[0-9]*/status 2>/dev/null | cut -d / -f 3; }
        for i in 1 2; do
            old=" $(children | tr '\n' ' ')"
            for p in $old; do [ $p = $$ ] || kill -9 $p; done
            new=
            until [ "$new" ]; do
                for p in $(children); do
                    case "$old" in *" $p "*) ;; *) new=$p ;; esac
                done
            done
        done
    "#;
    run(&vm, &format!("{kill} echo new >/root/new; sleep 2")).await;
    vmm.kill();
    assert!(vmm.ends_within(TIMEOUT));
    assert_eq!(
        open_disk(&path).unwrap().read("root/new").unwrap(),
        b"new\n"
    );
}

/// Pauses a VM, unless it has the link that cannot be paused.
async fn pause_if_possible(vm: &Vm) {
    if vm.health().await.link.kind == LinkKind::Serial {
        vm.pause().await.unwrap();
    }
}

#[tokio::test]
async fn dropping_the_last_handle_stops_a_vm_whose_disk_is_kept() {
    let (_folder, path) = new_disk();
    let vm = builder_on(&path).start().await.unwrap();
    assert!(vm.keeps_disk());
    let vmm = VmmProcess::of(&vm);
    let second = vm.clone();
    drop(vm);
    run(&second, "echo kept >/root/notes").await;
    pause_if_possible(&second).await;
    drop(second);
    let ended = tokio::task::spawn_blocking(move || vmm.ends_within(Vm::STOP_TIMEOUT + TIMEOUT));
    assert!(ended.await.unwrap());
    assert_eq!(clean_disk(&path).read("root/notes").unwrap(), b"kept\n");
}

/// Like when `main` returns an error: the handle is dropped, and then the
/// runtime.
#[test]
fn a_runtime_that_goes_away_stops_vms_whose_disks_are_kept() {
    let current = || tokio::runtime::Builder::new_current_thread();
    let multi = || tokio::runtime::Builder::new_multi_thread();
    let cases = [
        (current(), true, false),
        (multi(), true, false),
        (multi(), false, false),
        (multi(), true, true),
    ];
    for (mut builder, keep_handle, is_paused) in cases {
        let (_folder, path) = new_disk();
        let runtime = builder.enable_all().build().unwrap();
        let (vm, vmm) = runtime.block_on(async {
            let vm = builder_on(&path).start().await.unwrap();
            run(&vm, "echo kept >/root/notes").await;
            let vmm = VmmProcess::of(&vm);
            if is_paused {
                pause_if_possible(&vm).await;
            }
            (keep_handle.then_some(vm), vmm)
        });
        drop(runtime);
        assert!(vmm.ends_within(Duration::ZERO), "it was not waited for");
        assert_eq!(clean_disk(&path).read("root/notes").unwrap(), b"kept\n");
        if let Some(vm) = vm {
            let ended = matches!(vm.state(), VmState::Ended(end) if end.kind() == EndKind::Clean);
            assert!(ended, "{:?}", vm.state());
        }
    }
}

/// Starts a process that prints `ready`, and runs a command on SIGTERM.
async fn trap(vm: &Vm, when_asked: &str) -> ExecStream {
    let script = format!("trap '{when_asked}' TERM; echo ready; while :; do sleep 0.05; done");
    let mut events = vm.exec_stream(Command::shell(script)).unwrap();
    read_until(&mut events, b"ready\n").await;
    events
}

async fn read_until(events: &mut ExecStream, text: &[u8]) {
    let mut printed = Vec::new();
    while !printed.ends_with(text) {
        match events.next().await.unwrap() {
            Some(ExecEvent::Stdout(bytes)) => printed.extend(bytes),
            Some(_) => {}
            None => panic!("{printed:?}"),
        }
    }
}

fn assert_crashed(stopped: Result<(), Error>, end: VmEnd) {
    let error = stopped.unwrap_err();
    assert!(matches!(error, Error::Gone(End::Died)), "{error:?}");
    assert_eq!((end.reason, end.kind()), (End::Died, EndKind::Crashed));
}

#[tokio::test]
async fn a_vmm_that_is_killed_while_it_stops_has_crashed_and_clients_know_it() {
    let vm = builder().start().await.unwrap();
    let client = Vm::attach(vm.id()).await.unwrap();
    let vmm = VmmProcess::of(&vm);
    let mut events = trap(&vm, "echo asked").await;
    let (stopped, clients, ()) = tokio::join!(vm.stop(), client.stop(), async {
        read_until(&mut events, b"asked\n").await;
        vmm.kill();
    });
    let end = vm.ended().await;
    assert_crashed(stopped, end);
    assert_eq!(end.status.unwrap().signal(), Some(9));
    assert_eq!(end.to_string(), "it died (signal: 9 (SIGKILL))");
    assert_crashed(clients, client.ended().await);
    assert_eq!(client.ended().await, end);
    let healthy = vm.health().await;
    assert_eq!(healthy.state, VmState::Ended(end));
}

#[tokio::test]
async fn a_guest_that_resets_while_it_stops_has_crashed() {
    let vm = builder().start().await.unwrap();
    let client = Vm::attach(vm.id()).await.unwrap();
    let _events = trap(&vm, "reboot -f").await;
    let stopped = vm.stop().await;
    let end = vm.ended().await;
    assert_crashed(stopped, end);
    // The VMM itself exited normally.
    assert!(end.status.unwrap().success());
    assert_eq!(client.ended().await, end);
}

#[tokio::test]
async fn clients_know_that_a_vm_was_stopped_or_killed() {
    for stop in [true, false] {
        let vm = builder().start().await.unwrap();
        let (first, second) = tokio::join!(Vm::attach(vm.id()), Vm::attach(vm.id()));
        let (asking, watching) = (first.unwrap(), second.unwrap());
        match stop {
            true => asking.stop().await.unwrap(),
            false => asking.kill().await.unwrap(),
        }
        let end = vm.ended().await;
        let expected = match stop {
            true => (End::Stopped, EndKind::Clean),
            false => (End::Killed, EndKind::Cut),
        };
        assert_eq!((end.reason, end.kind()), expected);
        assert_eq!(asking.ended().await, end);
        assert_eq!(watching.ended().await, end);
        // Stopping a VM that was killed is not reported as a success.
        assert_eq!(watching.stop().await.is_ok(), stop);
        assert_eq!(vm.stop().await.is_ok(), stop);
    }
}

#[tokio::test]
async fn a_stop_that_takes_too_long_is_a_cut() {
    let (_folder, path) = new_disk();
    let vm = builder_on(&path).start().await.unwrap();
    let vmm = VmmProcess::of(&vm);
    // A paused VMM cannot stop the guest.
    vmm.pause();
    let error = vm.stop().await.unwrap_err();
    assert!(matches!(error, Error::Gone(End::StopTimedOut)), "{error:?}");
    let end = vm.ended().await;
    assert_eq!(end.kind(), EndKind::Cut);
    assert_eq!(end.status.unwrap().signal(), Some(9));
}
