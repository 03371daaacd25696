//! Ctrl-C.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::sample::Sample;

/// Stops flattening in the middle. False: it was over before that.
fn stopped_in_the_middle(sample: &Sample, child: &Child) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    let pid = Pid::from_child(child);
    let names = || {
        let folder = fs::read_dir(sample.path("out")).unwrap();
        let names = folder.map(|entry| entry.unwrap().file_name());
        names.collect::<Vec<_>>()
    };
    while names().is_empty() {
        assert!(Instant::now() < deadline, "it does not begin");
    }
    kill_process(pid, Signal::STOP).unwrap();
    names().iter().any(|name| name != "flat")
}

#[test]
fn flattening_that_is_interrupted_leaves_nothing() {
    let sample = Sample::new();
    let image = sample.path("large.raw");
    fs::write(&image, vec![7; 64 << 20]).unwrap();
    let out = sample.path("out");
    for _ in 0..10 {
        fs::create_dir(&out).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_vmcell-disk"))
            .args([
                "flatten".as_ref(),
                image.as_os_str(),
                out.join("flat").as_os_str(),
            ])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let in_the_middle = stopped_in_the_middle(&sample, &child);
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT).unwrap();
        kill_process(pid, Signal::CONT).unwrap();
        let code = child.wait().unwrap().code();
        if in_the_middle && code == Some(128 + 2) {
            assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
            return;
        }
        fs::remove_dir_all(&out).unwrap();
    }
    panic!("it was never interrupted in the middle");
}
