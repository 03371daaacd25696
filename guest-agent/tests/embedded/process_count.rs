//! The number of processes, with a directory in place of the cgroups.

use std::{fs, rc::Rc};

use vmcell_wire::{Capabilities, FailureKind, Outcome, Request, reset::ResetKey};

use crate::snapshots::{Recorder, agent_with_ports, frozen_directory};

pub(crate) fn processes_are_counted_as_the_kernel_does() {
    let directory = frozen_directory();
    let control = Recorder {
        taken: Rc::default(),
        result: Ok(()),
    };
    let (mut agent, [mut port, _]) = agent_with_ports(&directory, control, ResetKey::new([5; 16]));
    let (_, capabilities) = port.greet(&mut agent);
    assert!(capabilities.contains(Capabilities::PROCESS_COUNT));
    let count = Request::CountProcesses;
    // The agent has not opened the cgroup of all processes yet.
    port.ask(&mut agent, &count, is_unknown);
    port.ask(&mut agent, &Request::Thaw, |it| *it == Outcome::Done);
    // A kernel without the controller.
    port.ask(&mut agent, &count, is_unknown);
    let file = directory.path().join("vmcell/pids.current");
    fs::write(&file, "300\n").unwrap();
    port.ask(&mut agent, &count, |it| {
        *it == Outcome::Processes { count: 300 }
    });
    fs::write(&file, "many\n").unwrap();
    port.ask(&mut agent, &count, |it| matches!(it, Outcome::Failed(_)));
}

fn is_unknown(outcome: &Outcome<'_>) -> bool {
    match outcome {
        Outcome::Failed(failure) => failure.kind == FailureKind::NotFound,
        _ => false,
    }
}
