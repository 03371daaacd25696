//! What is left when the program that owns VMs is killed: nothing, or what the
//! next start removes.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    builder,
    leftovers::{Processes, leftovers, mounts},
    start,
};

const ROLE: &str = "VMCELL_TEST_ROLE";

/// The child process of the test below: it starts two VMs and waits.
#[test]
fn a_program_that_starts_two_and_waits() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let vms: Vec<_> = (0..2).filter_map(|_| runtime.block_on(start())).collect();
    for vm in &vms {
        runtime
            .block_on(vm.spawn(vmcell::Command::shell("setsid sleep 1000")))
            .unwrap();
        println!("\nstarted {}", vm.id());
    }
    println!("\nall");
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[tokio::test]
async fn a_killed_program_takes_all_with_it_and_the_next_start_removes_the_rest() {
    if builder().is_none() {
        return;
    }
    let before = mounts();
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["crash::a_program_that_starts_two_and_waits", "--exact"])
        .arg("--nocapture")
        .env(ROLE, "owner")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(program.stdout.take().unwrap());
    let mut ids = Vec::new();
    for line in said.lines() {
        let line = line.unwrap();
        match line.strip_prefix("started ") {
            Some(id) => ids.push((id.to_owned(), Processes::of(id))),
            None if line == "all" => break,
            None => {}
        }
    }
    assert_eq!(ids.len(), 2);
    program.kill().unwrap();
    program.wait().unwrap();
    for (id, processes) in &ids {
        assert!(processes.count() >= 2);
        assert!(processes.end_within(Duration::from_secs(20)), "{id}");
    }
    let vm = start().await.unwrap();
    for (id, _) in &ids {
        assert!(leftovers(id).is_empty());
    }
    vm.stop().await.unwrap();
    assert_eq!(before, mounts());
}
