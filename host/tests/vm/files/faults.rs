//! Failures of file operations.

use std::time::Duration;

use vmcell::{
    Command, Error,
    files::{FileFailureKind, ReadOptions, WriteOptions},
};

use super::{failure, kind};
use crate::{builder, start};

#[tokio::test]
async fn a_full_disk_is_an_error_and_the_old_file_stays() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    files.write("kept", "old").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("big"), vec![1; 32 << 20]).unwrap();
    // Leaves a few MiB free.
    let fill = "free=$(df -k /workspace | awk 'END {print $4}'); fallocate -l $(( (free - 4096) * 1024 )) /workspace/fill";
    let output = vm.exec(["sh", "-c", fill]).await.unwrap();
    assert!(output.success(), "{}", output.stderr_text());
    let error = files.write("kept", vec![2; 32 << 20]).await.unwrap_err();
    let full = failure(error);
    assert!(
        full.is_disk_full() && full.kind == FileFailureKind::Limit,
        "{full}"
    );
    // Also if the size is not announced before.
    let mut writer = files.writer("kept", WriteOptions::new()).await.unwrap();
    let error = loop {
        if let Err(error) = writer.write(vec![3; 1 << 20]).await {
            break error;
        }
    };
    assert!(failure(error).is_disk_full());
    let error = files.push(&source, "pushed").run().await.unwrap_err();
    let full = failure(error);
    assert!(full.is_disk_full() && full.text.contains("big"), "{full}");
    assert_eq!(files.read("kept").await.unwrap(), b"old");
    let names = vm.exec(["sh", "-c", "cd /workspace; ls -A . pushed"]).await;
    assert_eq!(
        names.unwrap().stdout_text(),
        ".:\nfill\nkept\npushed\n\npushed:\n"
    );
    files.remove("fill").await.unwrap();
    files.write("kept", vec![2; 32 << 20]).await.unwrap();
}

#[tokio::test]
async fn a_link_that_breaks_ends_the_work_and_leaves_nothing() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    files.write("kept", vec![1; 8 << 20]).await.unwrap();
    let mut writer = files.writer("kept", WriteOptions::new()).await.unwrap();
    writer.write(vec![2; 1 << 20]).await.unwrap();
    let mut reader = files.reader("kept", ReadOptions::new()).await.unwrap();
    reader.next().await.unwrap();
    vm.reconnect().unwrap();
    let error = loop {
        if let Err(error) = writer.write(vec![2; 1 << 20]).await {
            break error;
        }
    };
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    let error = loop {
        match reader.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a part passed for the whole"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    let bytes = files.read("kept").await.unwrap();
    assert!(bytes == vec![1; 8 << 20]);
    let names = vm.exec(["ls", "-A", "/workspace"]).await.unwrap();
    assert_eq!(names.stdout_text(), "kept\n");
}

#[tokio::test]
async fn work_that_is_dropped_stops_in_the_guest() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let many = "mkdir /workspace/many && cd /workspace/many && for d in $(seq 30); do mkdir $d; (cd $d; touch $(seq 500)); done";
    let many = Command::shell(many).timeout(Duration::from_secs(600));
    assert!(vm.exec_command(many).await.unwrap().success());
    let removing = files.remove_tree("many");
    // Too short a time to remove 15,000 files.
    let outcome = tokio::time::timeout(Duration::from_millis(5), removing).await;
    assert!(outcome.is_err());
    // The removal did not continue.
    let left = vm.exec(["sh", "-c", "ls /workspace/many | wc -l"]).await;
    assert_ne!(left.unwrap().stdout_text(), "0\n");
    files.remove_tree("many").await.unwrap();
    assert!(!files.exists("many").await.unwrap());
}

#[tokio::test]
async fn a_worker_that_is_killed_is_an_error_and_another_one_takes_over() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    files.write("kept", "old").await.unwrap();
    let mut writer = files.writer("kept", WriteOptions::new()).await.unwrap();
    writer.write("new").await.unwrap();
    // Workers are the children of PID 1 that are copies of it.
    let kill = "for p in /proc/[0-9]*; do [ ${p#/proc/} != 1 ] && \
        [ \"$(cat $p/comm)\" = init ] && kill -9 ${p#/proc/}; done; true";
    vm.exec(["sh", "-c", kill]).await.unwrap();
    let error = writer.finish().await.unwrap_err();
    assert_eq!(kind(error), FileFailureKind::Other);
    assert_eq!(files.read("kept").await.unwrap(), b"old");
    let names = vm.exec(["ls", "-A", "/workspace"]).await.unwrap();
    assert_eq!(names.stdout_text(), "kept\n");
}

#[tokio::test]
async fn a_vm_that_ends_ends_the_work() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let mut writer = files.writer("file", WriteOptions::new()).await.unwrap();
    writer.write("x").await.unwrap();
    vm.kill().await.unwrap();
    assert!(matches!(writer.finish().await, Err(Error::Gone(_))));
    assert!(matches!(files.list("").await, Err(Error::Gone(_))));
}

#[tokio::test]
async fn a_small_vm_has_room_for_workers() {
    let vm = builder().memory_mib(64).start().await.unwrap();
    let files = vm.files().at("/workspace");
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..100u32 {
        let files = files.clone();
        tasks.spawn(async move {
            let name = format!("d{}/f{number}", number % 7);
            let bytes = vec![number as u8; 20_000];
            files.write(&name, bytes.clone()).await.unwrap();
            assert!(files.read(&name).await.unwrap() == bytes);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    // A clean stop ends the workers too, and fast.
    vm.stop().await.unwrap();
}
