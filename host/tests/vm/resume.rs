//! Streams that continue when the link breaks.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vmcell::{Cause, Command, ExecEvent, ReadFrom};

use crate::start;

#[tokio::test]
async fn a_stream_goes_on_at_its_byte_however_often_the_link_breaks() {
    let vm = start().await;
    let expected: String = (1..=600_000).map(|number| format!("{number}\n")).collect();
    let mut stream = vm
        .exec_stream(Command::from_argv(["seq", "1", "600000"]))
        .unwrap();
    let mut received = Vec::new();
    let (mut drops, mut started) = (0, 0);
    let exit = loop {
        match stream.next().await.unwrap().unwrap() {
            ExecEvent::Started { .. } => started += 1,
            ExecEvent::Stdout(bytes) => {
                received.extend(bytes);
                assert_eq!(stream.offsets().stdout, received.len() as u64);
                if received.len() > drops * 100_000 {
                    drops += 1;
                    vm.reconnect().unwrap();
                }
            }
            ExecEvent::Exited(exit) => break exit,
            other => panic!("{other:?}"),
        }
    };
    assert!(drops >= 20, "only {drops} drops");
    assert_eq!((started, exit.cause), (1, Cause::Code(0)));
    assert!(received == expected.as_bytes());
}

#[tokio::test]
async fn input_goes_on_too() {
    let vm = start().await;
    let bytes: Vec<u8> = (0..4_000_000u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut cat = vm
        .exec_stream(Command::new("cat").stdin_stream())
        .unwrap()
        .into_parts();
    let (vm_of_writer, to_send) = (vm.clone(), bytes.clone());
    let writer = tokio::spawn(async move {
        for chunk in to_send.chunks(200_000) {
            cat.stdin.write_all(chunk).await.unwrap();
            vm_of_writer.reconnect().unwrap();
        }
        cat.stdin.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    cat.stdout.read_to_end(&mut received).await.unwrap();
    writer.await.unwrap();
    assert!(received == bytes, "{} bytes came back", received.len());
    drop(cat.stderr);
    assert!(cat.waiter.wait().await.unwrap().success());
}

#[tokio::test]
async fn short_commands_run_once_whatever_happens_to_their_link() {
    let vm = start().await;
    for number in 0..30 {
        let line = format!("echo {number} >> /workspace/log; echo {number}");
        let running = vm.exec_stream(Command::shell(line)).unwrap();
        // At a different moment of its short life each time.
        for _ in 0..number {
            tokio::task::yield_now().await;
        }
        vm.reconnect().unwrap();
        let output = running.wait_with_output().await.unwrap();
        assert_eq!(output.stdout_text(), format!("{number}\n"));
    }
    let log = vm.exec(["cat", "/workspace/log"]).await.unwrap();
    let expected: String = (0..30).map(|number| format!("{number}\n")).collect();
    assert_eq!(log.stdout_text(), expected);
    assert!(vm.processes().list().await.unwrap().is_empty());
}

#[tokio::test]
async fn background_starts_and_lists_survive_a_broken_link() {
    let vm = start().await;
    for number in 0..10 {
        let tag = format!("job-{number}");
        let command = Command::new("sleep").arg("1000").tag(&tag);
        let (job, ()) = tokio::join!(vm.spawn(command), async {
            for _ in 0..number {
                tokio::task::yield_now().await;
            }
            vm.reconnect().unwrap();
        });
        assert_eq!(job.unwrap().tag(), tag);
    }
    let processes = vm.processes();
    let (list, reconnected) = tokio::join!(processes.list(), async { vm.reconnect() });
    reconnected.unwrap();
    assert_eq!(list.unwrap().len(), 10);
    let mut log = vm.processes().attach("job-3", ReadFrom::Start).unwrap();
    vm.reconnect().unwrap();
    vm.processes().kill("job-3").await.unwrap();
    match log.next().await.unwrap() {
        Some(ExecEvent::Exited(exit)) => assert_eq!(exit.cause, Cause::Killed),
        other => panic!("{other:?}"),
    }
}
