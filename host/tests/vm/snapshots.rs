//! VMs that are saved with their memory, and restored.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use vmcell::{Command, Pool, Template, Vm, VmState};

use crate::{base, clock::assert_clock_matches};

/// Starts a VM with the default link, whatever link the other tests use.
async fn start() -> Vm {
    let builder = Vm::builder().image(base()).memory_mib(128);
    builder.start().await.unwrap()
}

async fn text(vm: &Vm, script: &str) -> String {
    let output = vm.exec(["sh", "-c", script]).await.unwrap();
    assert!(output.success(), "{script}: {output:?}");
    output.stdout_text().trim().to_owned()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("snapshot")
    }

    /// Asserts that nothing is left in the folder but the snapshot.
    fn assert_clean(&self, is_there: bool) {
        let names: Vec<_> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        let expected: &[&str] = if is_there { &["snapshot"] } else { &[] };
        assert_eq!(names, expected);
    }
}

#[tokio::test]
async fn a_restored_vm_goes_on_where_the_snapshot_was_taken_and_is_another_vm() {
    let vm = start().await;
    vm.files().write("/root/file", "on the disk").await.unwrap();
    // A program that is in memory only, and counts.
    let counting = "rm /root/count.sh; i=0; while true; do i=$((i+1)); echo $i > /run/count; \
                    echo $i; sleep 0.05; done";
    vm.files().write("/root/count.sh", counting).await.unwrap();
    let counter = vm
        .spawn(Command::new("sh").arg("/root/count.sh"))
        .await
        .unwrap();
    text(&vm, "until [ -s /run/count ]; do sleep 0.05; done").await;
    let folder = Folder::new();
    let report = vm.snapshot(folder.path()).await.unwrap();
    assert!(
        report.bytes > 1 << 20 && report.bytes < 100 << 20,
        "{report:?}"
    );
    assert!(report.pause < Duration::from_secs(10), "{report:?}");
    folder.assert_clean(true);
    // The VM itself goes on.
    assert_eq!(vm.state(), VmState::Running);
    let before: u64 = text(&vm, "cat /run/count").await.parse().unwrap();
    text(
        &vm,
        &format!("until [ $(cat /run/count) -gt {before} ]; do sleep 0.05; done"),
    )
    .await;
    assert_clock_matches(&vm).await;

    let identity =
        "hostname; cat /proc/sys/kernel/random/boot_id; head -c 4096 /dev/urandom | sha256sum";
    let mut identities = HashSet::new();
    for line in text(&vm, identity).await.lines() {
        assert!(identities.insert(line.to_owned()));
    }
    for _ in 0..2 {
        let copy = Vm::restore(folder.path()).await.unwrap();
        assert_clock_matches(&copy).await;
        assert_eq!(
            copy.files().read("/root/file").await.unwrap(),
            b"on the disk"
        );
        let at_first: u64 = text(&copy, "cat /run/count").await.parse().unwrap();
        let more = format!("until [ $(cat /run/count) -gt {at_first} ]; do sleep 0.05; done");
        text(&copy, &more).await;
        for line in text(&copy, identity).await.lines() {
            assert!(
                identities.insert(line.to_owned()),
                "{line} was there before"
            );
        }
        // The process is the same, with all its output.
        let process = copy.processes().get(counter.id()).await.unwrap();
        assert_eq!(process.unwrap().pid(), counter.pid());
        copy.stop().await.unwrap();
    }
    vm.stop().await.unwrap();
}

#[tokio::test]
async fn a_template_is_made_once_and_started_many_times() {
    let made = Arc::new(AtomicUsize::new(0));
    let get = |key: &str| {
        let made = made.clone();
        Template::builder(Vm::builder().image(base()).memory_mib(128))
            .prepare(key, move |vm| {
                made.fetch_add(1, Ordering::Relaxed);
                async move {
                    vm.files().write("/root/file", "prepared").await?;
                    vm.spawn(Command::new("sleep").arg("100000").tag("sleeper"))
                        .await?;
                    Ok(())
                }
            })
            .get()
    };
    let key = format!("test {:?}", Instant::now());
    // Two at once: one waits for the other.
    let (first, second) = tokio::join!(get(&key), get(&key));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(made.load(Ordering::Relaxed), 1);
    assert_eq!(first.path(), second.path());
    let started = Instant::now();
    let vms = [first.start(), second.start(), first.start()];
    for vm in futures_util::future::join_all(vms).await {
        let vm = vm.unwrap();
        assert_eq!(vm.files().read("/root/file").await.unwrap(), b"prepared");
        let sleeper = vm.processes().get("sleeper").await.unwrap();
        assert!(sleeper.is_some());
    }
    println!("three VMs in {:?}", started.elapsed());
    assert!(Template::remove(first.name()).await.unwrap());
    assert!(!Template::remove(first.name()).await.unwrap());
    // What was loaded before still works.
    first.start().await.unwrap();
}

#[tokio::test]
async fn a_warm_start_is_faster_than_a_boot() {
    let builder = || Vm::builder().image(base()).memory_mib(128);
    // Makes the template, if it is not there.
    builder().warm(true).start().await.unwrap();
    for _ in 0..3 {
        let started = Instant::now();
        let cold = builder().start().await.unwrap();
        let cold_start = started.elapsed();
        cold.exec(["true"]).await.unwrap();
        let cold_exec = started.elapsed();
        let started = Instant::now();
        let warm = builder().warm(true).hostname("warm").start().await.unwrap();
        let warm_start = started.elapsed();
        warm.exec(["true"]).await.unwrap();
        let warm_exec = started.elapsed();
        println!("cold {cold_start:?} {cold_exec:?}, warm {warm_start:?} {warm_exec:?}");
        assert_eq!(text(&warm, "hostname").await, "warm");
    }
}

#[tokio::test]
async fn a_pool_hands_out_each_vm_once_and_replaces_those_that_die() {
    let template = Template::builder(Vm::builder().image(base()).memory_mib(128));
    let template = template.get().await.unwrap();
    let pool = Pool::builder(template).size(2).start();
    pool.filled().await;
    let mut ids = HashSet::new();
    for _ in 0..4 {
        let started = Instant::now();
        let vm = pool.take().await.unwrap();
        vm.exec(["true"]).await.unwrap();
        println!("taken in {:?}", started.elapsed());
        assert!(ids.insert(vm.id().to_owned()));
        assert_eq!(vm.state(), VmState::Running);
    }
}
