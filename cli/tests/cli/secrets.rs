//! `--secret-env`: variables of the caller that one command gets.

use std::fs;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::{
    processes::Process,
    vmcell::{READY_AND_WAIT, Vmcell},
};

const VALUE: &str = "hunter2-hunter2/xyzzy";

#[test]
fn a_command_gets_a_variable_of_the_caller_and_does_not_show_it() {
    let line =
        "echo \"$INNER\"; echo ${OUTER-none}; printf %s \"$INNER\" | wc -c; echo \"$INNER\" >&2";
    let run = Vmcell::run(["--secret-env", "OUTER=INNER"], ["sh", "-c", line]);
    let ended = run.env("OUTER", VALUE).env("VMCELL_LOG", "trace").finish();
    let masked = "*".repeat(VALUE.len());
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(ended.stdout(), format!("{masked}\nnone\n{}\n", VALUE.len()));
    assert!(ended.stderr.contains(&masked), "{ended:?}");
    assert!(!ended.stderr.contains(VALUE), "{ended:?}");
}

#[test]
fn a_crash_of_the_program_or_of_its_vm_leaves_no_core_dump() {
    // As it is where users want them.
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Core, wanted).unwrap();
    let mut running = Vmcell::run([], READY_AND_WAIT).start();
    assert_eq!(running.line(), "ready\n");
    let program = running.pid();
    let vmm = Process::only_child_of(program).pid.as_raw_nonzero();
    for process in [program.to_string(), vmm.to_string()] {
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"));
        let soft = core
            .and_then(|line| line.split_whitespace().nth(4))
            .unwrap();
        assert!(matches!(soft, "0" | "1"), "{limits}");
    }
    running.signal(Signal::TERM);
    running.finish();
}

#[test]
fn what_is_wrong_is_found_before_anything_boots() {
    for (grant, said) in [
        ("NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE"),
        ("not a name", "name of a secret"),
    ] {
        let run = Vmcell::run(["--secret-env", grant], ["true"]);
        let ended = run.env("VMCELL_KERNEL", "/none").finish();
        ended.assert_failed(125, said);
    }
    let run = Vmcell::run(["--secret-env", "EMPTY"], ["true"]);
    run.env("EMPTY", "").finish().assert_failed(125, "is empty");
}
