//! The events of a VM as streams of `futures`.

use futures_util::{StreamExt, TryStreamExt};
use vmcell::{
    Command, Error, ExecEvent, ReadFrom, Vm,
    files::{ReadOptions, WalkOptions, Watch},
    service::{LogEvent, ServiceSpec},
    terminal::TerminalOptions,
};

use crate::start;

#[tokio::test]
async fn all_that_sends_events_is_a_stream() {
    let vm = start().await;
    let command = Command::shell("echo out; echo err >&2; exit 3");
    let events = vm.exec_stream(command).unwrap();
    let events: Vec<ExecEvent> = events.try_collect().await.unwrap();
    assert!(matches!(events.first(), Some(ExecEvent::Started { .. })));
    assert!(events.contains(&ExecEvent::Stdout("out\n".into())));
    assert!(events.contains(&ExecEvent::Stderr("err\n".into())));
    assert!(matches!(events.last(), Some(ExecEvent::Exited(exit)) if exit.code() == Some(3)));

    let files = vm.files().at("/tmp");
    let changes = files.watch("/tmp", Watch::new()).await.unwrap();
    files.write("a", "first").await.unwrap();
    // The file is written under another name first.
    let mut paths = changes.map(|change| change.unwrap().path);
    while paths.next().await.unwrap().file_name() != Some("a".as_ref()) {}
    let entries = files.walk("/tmp", WalkOptions::new()).await.unwrap();
    let entries: Vec<_> = entries.try_collect().await.unwrap();
    assert!(entries.iter().any(|entry| entry.path.ends_with("a")));
    let pieces = files.reader("a", ReadOptions::new()).await.unwrap();
    let pieces: Vec<_> = pieces.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"first");

    let spec = ServiceSpec::new(Command::shell("echo begun"));
    let service = vm.services().start("web", spec).await.unwrap();
    let log = service.logs().all().follow(true).stream().await.unwrap();
    let log: Vec<_> = log.try_collect().await.unwrap();
    assert!(
        matches!(&log[..], [LogEvent::Bytes { offset: 0, bytes }] if bytes == "begun\n"),
        "{log:?}"
    );

    let options = TerminalOptions::command(Command::shell("printf shown"));
    let terminal = vm.terminals().open(options).await.unwrap();
    let shown: Vec<_> = terminal.follow().collect().await;
    assert_eq!(shown.concat(), b"shown");
}

/// Returns what a stream yields that waits until the VM is killed.
async fn when_killed<T>(
    vm: Vm,
    stream: impl futures_util::Stream<Item = Result<T, Error>>,
) -> Vec<Result<T, Error>> {
    let (items, killed) = tokio::join!(stream.collect(), vm.kill());
    killed.unwrap();
    items
}

#[tokio::test]
async fn a_stream_ends_after_its_first_error() {
    let vm = start().await;
    let process = vm.spawn(Command::new("cat").stdin_stream()).await.unwrap();
    let events = process.attach(ReadFrom::Start).unwrap();
    let items = when_killed(vm, events).await;
    assert!(matches!(&items[..], [Err(Error::Gone(_))]), "{items:?}");

    let vm = start().await;
    let changes = vm.files().watch("/tmp", Watch::new()).await.unwrap();
    let items = when_killed(vm, changes).await;
    assert!(matches!(&items[..], [Err(Error::Gone(_))]), "{items:?}");

    let vm = start().await;
    let missing = vm.exec_stream(Command::new("/no/such/program")).unwrap();
    let items: Vec<_> = missing.collect().await;
    assert!(matches!(&items[..], [Err(Error::Exec(_))]), "{items:?}");
}
