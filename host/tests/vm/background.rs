//! Background processes.

use vmcell::{
    Cause, Command, Error, ExecEvent, ExecFailureKind, Exit, Offsets, OutputKind, ProcessSelector,
    ReadFrom, Signal, Vm,
};

use crate::{short_timeout, start};

/// Everything that a stream delivers until the process ends.
#[derive(Debug, Default)]
struct Observed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// Offset and size of each gap in standard output.
    gaps: Vec<(usize, u64)>,
    exit: Option<Exit>,
}

async fn observe(mut stream: vmcell::ExecStream) -> Result<Observed, Error> {
    let mut observed = Observed::default();
    while let Some(event) = stream.next().await? {
        match event {
            ExecEvent::Stdout(bytes) => observed.stdout.extend(bytes),
            ExecEvent::Stderr(bytes) => observed.stderr.extend(bytes),
            ExecEvent::Gap { output, bytes } => {
                assert_eq!(output, OutputKind::Stdout);
                observed.gaps.push((observed.stdout.len(), bytes));
            }
            ExecEvent::Exited(exit) => observed.exit = Some(exit),
            ExecEvent::Started { .. } => panic!("it was started long ago"),
            other => panic!("{other:?}"),
        }
    }
    Ok(observed)
}

fn kind(error: Error) -> ExecFailureKind {
    match error {
        Error::Exec(failure) => failure.kind,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_background_process_is_listed_watched_waited_for_and_forgotten() {
    let vm = start().await;
    let script = "echo one; echo problem >&2; read line; echo $line; exit 3";
    let command = Command::shell(script).tag("job").stdin_stream();
    let job = vm.spawn(command).await.unwrap();
    assert_eq!(job.tag(), "job");

    let list = vm.processes().list().await.unwrap();
    let [info] = &list[..] else {
        panic!("{list:?}");
    };
    assert_eq!((info.id, info.pid), (job.id(), job.pid()));
    assert_eq!(info.command, ["/bin/sh", "-c", script]);
    assert!(info.background && info.exit.is_none() && info.uid == 0);

    // While it runs it cannot be forgotten, and its tag cannot be used again.
    assert_eq!(
        kind(job.forget().await.unwrap_err()),
        ExecFailureKind::Conflict
    );
    let twin = vm.spawn(Command::new("true").tag("job")).await;
    assert_eq!(kind(twin.unwrap_err()), ExecFailureKind::Conflict);

    // By id, by pid and by tag it is the same process.
    for name in [
        ProcessSelector::Id(job.id()),
        ProcessSelector::Pid(job.pid()),
        "job".into(),
    ] {
        let found = vm.processes().get(name).await.unwrap().unwrap();
        assert_eq!(found.id(), job.id());
    }
    let watching = tokio::spawn(observe(job.attach(ReadFrom::Start).unwrap()));
    let stream = job.attach_with_input(ReadFrom::Now).unwrap();
    assert!(stream.input().write("two\n").await);
    let observed = watching.await.unwrap().unwrap();
    assert_eq!(observed.stdout, b"one\ntwo\n");
    assert_eq!(observed.stderr, b"problem\n");
    let exit = job.wait().await.unwrap();
    assert_eq!((exit.cause, exit.stdout_bytes), (Cause::Code(3), 8));
    assert_eq!(Some(exit), observed.exit);

    // Its output is kept until it is forgotten.
    let from = ReadFrom::Offsets(Offsets {
        stdout: 4,
        stderr: 8,
    });
    let observed = observe(job.attach(from).unwrap()).await.unwrap();
    assert_eq!(
        (&observed.stdout[..], &observed.stderr[..]),
        (&b"two\n"[..], &b""[..])
    );
    job.forget().await.unwrap();
    assert!(vm.processes().list().await.unwrap().is_empty());
    assert_eq!(
        kind(job.wait().await.unwrap_err()),
        ExecFailureKind::NotFound
    );
    let error = observe(job.attach(ReadFrom::Start).unwrap())
        .await
        .unwrap_err();
    assert_eq!(kind(error), ExecFailureKind::NotFound);
}

#[tokio::test]
async fn bytes_that_were_dropped_are_told_to_the_last_one() {
    let vm = start().await;
    // A mebibyte of numbers through a ring buffer of 64 KiB that nobody reads.
    let text: String = (1..=150_000).map(|number| format!("{number}\n")).collect();
    let command = Command::from_argv(["seq", "1", "150000"]).keep_output(64 * 1024);
    let job = vm.spawn(command).await.unwrap();
    let exit = job.wait().await.unwrap();
    assert_eq!(exit.stdout_bytes, text.len() as u64);

    let observed = observe(job.attach(ReadFrom::Start).unwrap()).await.unwrap();
    let kept = 64 * 1024;
    assert_eq!(observed.gaps, [(0, (text.len() - kept) as u64)]);
    assert!(observed.stdout == text.as_bytes()[text.len() - kept..]);

    // An offset beyond the end is an error; it does not wait.
    let from = ReadFrom::Offsets(Offsets {
        stdout: text.len() as u64 + 1,
        stderr: 0,
    });
    let error = observe(job.attach(from).unwrap()).await.unwrap_err();
    assert_eq!(kind(error), ExecFailureKind::Invalid);
}

#[tokio::test]
async fn a_kill_ends_the_whole_tree_and_proves_it() {
    let vm = start().await;
    // Two descendants that left the process group and hold no pipe.
    let script = "for n in 1 2; do setsid sh -c 'sleep 1000 & sleep 1000' <&- >&- 2>&- & done; \
                  echo ready; sleep 1000";
    let job = vm.spawn(Command::shell(script)).await.unwrap();
    wait_for(&vm, &job, "ready\n").await;
    let exit = job.kill().await.unwrap();
    assert_eq!((exit.cause, exit.tree_ended), (Cause::Killed, Some(true)));
    let left = vm.exec(["pidof", "sleep"]).await.unwrap();
    assert_eq!(left.stdout_text(), "", "something survived");
    // Killing it again gives the same result.
    assert_eq!(job.kill().await.unwrap().cause, Cause::Killed);
}

#[tokio::test]
async fn descendants_of_an_ended_process_can_be_killed_too() {
    let vm = start().await;
    let script = "setsid sleep 1000 <&- >&- 2>&- & echo ready";
    let job = vm.spawn(Command::shell(script)).await.unwrap();
    let exit = job.wait().await.unwrap();
    assert_eq!((exit.cause, exit.tree_ended), (Cause::Code(0), Some(false)));
    let exit = job.kill().await.unwrap();
    assert_eq!((exit.cause, exit.tree_ended), (Cause::Code(0), Some(true)));
    let left = vm.exec(["pidof", "sleep"]).await.unwrap();
    assert_eq!(left.stdout_text(), "");
}

#[tokio::test]
async fn signals_reach_the_group() {
    let vm = start().await;
    let script = "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done";
    let job = vm.spawn(Command::shell(script)).await.unwrap();
    wait_for(&vm, &job, "ready\n").await;
    job.signal(Signal::NULL).await.unwrap();
    job.signal(Signal::USR1).await.unwrap();
    wait_for(&vm, &job, "ready\nusr1\n").await;
    job.signal(Signal::TERM).await.unwrap();
    assert_eq!(job.wait().await.unwrap().cause, Cause::Signal(Signal::TERM));
    let error = job.signal(Signal::NULL).await.unwrap_err();
    assert_eq!(kind(error), ExecFailureKind::NotFound);
}

#[tokio::test]
async fn a_foreground_command_ends_with_its_stream_unless_detached() {
    let vm = start().await;
    let dropped = vm.exec_stream(Command::from_argv(["sleep", "1000"]).tag("dropped"));
    let mut dropped = dropped.unwrap();
    assert!(matches!(
        dropped.next().await.unwrap(),
        Some(ExecEvent::Started { .. })
    ));
    let kept = vm.exec_stream(Command::from_argv(["sleep", "1001"]).tag("kept"));
    let kept = kept.unwrap().detach().await.unwrap();
    let process = vm.processes().get("dropped").await.unwrap().unwrap();
    let end = tokio::spawn(async move { process.wait().await });
    drop(dropped);
    assert_eq!(end.await.unwrap().unwrap().cause, Cause::Killed);
    kept.signal(Signal::NULL).await.unwrap();
    let exit = kept.kill().await.unwrap();
    assert_eq!(exit.cause, Cause::Killed);
    kept.forget().await.unwrap();
}

#[tokio::test]
async fn a_background_process_keeps_to_its_time() {
    let vm = start().await;
    // Long enough for a shell to start on a busy machine.
    let command = Command::shell("echo begun; sleep 1000").timeout(short_timeout(&vm).await);
    let job = vm.spawn(command).await.unwrap();
    let exit = job.wait().await.unwrap();
    assert_eq!((exit.cause, exit.tree_ended), (Cause::Timeout, Some(true)));
    let observed = observe(job.attach(ReadFrom::Start).unwrap()).await.unwrap();
    assert_eq!(observed.stdout, b"begun\n");
}

#[tokio::test]
async fn ten_readers_of_one_process_see_the_same() {
    let vm = start().await;
    let job = vm.spawn(Command::from_argv(["seq", "1", "100000"]).stdin_stream());
    let job = job.await.unwrap();
    let expected: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let readers: Vec<_> = (0..10)
        .map(|_| tokio::spawn(observe(job.attach(ReadFrom::Start).unwrap())))
        .collect();
    for reader in readers {
        let observed = reader.await.unwrap().unwrap();
        assert_eq!(observed.gaps, []);
        assert!(observed.stdout == expected.as_bytes());
    }
}

/// Waits until a process has printed this text.
async fn wait_for(vm: &Vm, process: &vmcell::Process, text: &str) {
    let mut stream = vm.processes().attach(process, ReadFrom::Start).unwrap();
    let mut printed = Vec::new();
    while printed != text.as_bytes() {
        match stream.next().await.unwrap() {
            Some(ExecEvent::Stdout(bytes)) => printed.extend(bytes),
            // A shell may print messages about the ends of its children.
            Some(ExecEvent::Stderr(_)) => {}
            other => panic!("{other:?} after {printed:?}"),
        }
    }
}
