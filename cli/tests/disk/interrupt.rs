//! Interrupted and killed runs.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::sample::Sample;

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// Returns whether the program has a file in the directory open, named or not.
fn has_begun(child: &Child, folder: &Path) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{}/fd", child.id())) else {
        return false;
    };
    let mut files = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    files.any(|file| file.starts_with(folder) && file != folder)
}

/// Starts flattening an image, and stops the program (SIGSTOP) in the middle.
/// Returns `None` if it had finished before that.
fn stopped_in_the_middle(image: &Path, out: &Path) -> Option<Child> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let flat = out.join("flat");
    let mut child = Command::new(env!("CARGO_BIN_EXE_vmcell-disk"))
        .args(["flatten".as_ref(), image.as_os_str(), flat.as_os_str()])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !has_begun(&child, out) && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it did not start");
    }
    // Fails only if the program has ended.
    let _ = kill_process(Pid::from_child(&child), Signal::STOP);
    if flat.exists() {
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(flat).unwrap();
        return None;
    }
    Some(child)
}

#[test]
fn flattening_that_is_interrupted_or_killed_leaves_nothing() {
    let sample = Sample::new();
    let image = sample.path("large.raw");
    fs::write(&image, vec![7; 64 << 20]).unwrap();
    let out = sample.path("out");
    fs::create_dir(&out).unwrap();
    for (signal, code) in [(Signal::INT, Some(128 + 2)), (Signal::KILL, None)] {
        let mut attempts = (0..10).filter_map(|_| stopped_in_the_middle(&image, &out));
        let mut child = attempts.next().expect("it was never stopped in the middle");
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).unwrap();
        kill_process(pid, Signal::CONT).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        assert_eq!(names(&out), 0);
    }
}
