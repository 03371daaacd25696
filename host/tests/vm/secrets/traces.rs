//! What is left of a secret when the program that had it has ended.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::Path,
};

use vmcell::{Command, LinkKind, service::ServiceSpec, terminal::TerminalOptions};

use super::{VALUE, shell, token};
use crate::builder;

/// Asserts that no file in a folder contains the value.
pub(super) fn assert_no_trace(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => assert_no_trace(&path),
            false => assert_eq!(count_in(&path), 0, "{}", path.display()),
        }
    }
}

/// Returns how often a file contains the value, or half of it.
fn count_in(path: &Path) -> usize {
    const PIECE: usize = 1 << 20;
    let half = &VALUE.as_bytes()[..VALUE.len() / 2];
    let finder = memchr::memmem::Finder::new(half);
    let file = File::open(path).unwrap();
    let mut buffer = vec![0; PIECE + half.len()];
    let mut offset = 0;
    let mut count = 0;
    loop {
        let length = file.read_at(&mut buffer, offset).unwrap();
        if length == 0 {
            return count;
        }
        count += finder.find_iter(&buffer[..length]).count();
        offset += PIECE as u64;
    }
}

#[tokio::test]
async fn nothing_of_a_secret_stays_in_the_memory_of_the_guest() {
    let vm = builder().link(LinkKind::Serial).start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with");
    let use_it = || Command::shell("test ${#TOKEN} = 31").secret_env("TOKEN", &token());
    for _ in 0..5 {
        let output = vm.exec_command(use_it()).await.unwrap();
        assert!(output.success(), "{output:?}");
    }
    vm.spawn(use_it()).await.unwrap().wait().await.unwrap();
    let sleeping = Command::new("sleep")
        .arg("1000")
        .secret_env("TOKEN", &token());
    let services = vm.services();
    let service = services
        .start("s", ServiceSpec::new(sleeping.clone()))
        .await
        .unwrap();
    let options = TerminalOptions::command(sleeping.clone());
    let terminal = vm.terminals().open(options).await.unwrap();

    // As long as they run, it is in their memory, which other users cannot read.
    let found =
        "grep -l correct-[h]orse /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; true";
    let seen = shell(&vm, found).await;
    assert_eq!(
        seen.lines().filter(|line| line.contains("environ")).count(),
        2,
        "{seen}"
    );
    let other = Command::shell(found).user("cell");
    let output = vm.exec_command(other).await.unwrap();
    assert_eq!(output.stdout_text(), "");
    vm.snapshot(&path).await.unwrap();
    assert!(count_in(&path.join("state")) > 0, "the search finds it");

    service.stop().await.unwrap();
    terminal.terminate().await.unwrap();
    // The page cache is where a program would have put it itself.
    vm.exec(["true"]).await.unwrap();
    let path = folder.path().join("without");
    vm.snapshot(&path).await.unwrap();
    assert_no_trace(&path);
    vm.kill().await.unwrap();
}
