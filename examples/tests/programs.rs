//! Runs the examples, each with a VM of its own.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Runs a program, and returns what it prints.
fn printed_by(program: &str) -> String {
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

macro_rules! examples {
    ($($name:ident: [$($expected:literal),*];)*) => {
        $(
            #[test]
            fn $name() {
                let printed = printed_by(env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
                for expected in [$($expected),*] {
                    assert!(printed.contains(expected), "{expected:?} in {printed}");
                }
            }
        )*
    };
}

examples! {
    run: ["Linux"];
    processes: ["started\n", "killed, and all its descendants: Some(true)"];
    files: ["--- a/words\n", "+b\n", "\"a\\nb\\n\""];
    terminal: ["/tmp", "# cd /tmp && pwd"];
    services: ["200 OK", "hello from the guest"];
    templates: ["'[0]'", "'[19]'"];
    disk: ["Added \"root/notes\""];
}
