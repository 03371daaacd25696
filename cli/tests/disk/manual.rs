//! Shell completions, manual pages and help texts.

use std::{fs, process::Command};

use crate::{
    program::disk,
    sample::{Sample, run},
};

#[test]
fn completions_are_for_every_shell_and_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = disk(["completions", shell]).printed();
        for word in ["sha256", "allow-backing", "flatten"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    let sample = Sample::new();
    let script = sample.path("completions");
    fs::write(&script, disk(["completions", "bash"]).printed()).unwrap();
    run(Command::new("bash").arg("-n").arg(script));
}

#[test]
fn there_is_a_manual_page_for_each_command_of_both_programs() {
    let sample = Sample::new();
    for (program, command) in [
        (env!("CARGO_BIN_EXE_vmcell-disk"), "vmcell-disk-grep"),
        (env!("CARGO_BIN_EXE_vmcell"), "vmcell-service-logs"),
    ] {
        let folder = sample.path(command);
        run(Command::new(program).args(["man", "--dir"]).arg(&folder));
        let page = fs::read_to_string(folder.join(format!("{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
        let whole = run(Command::new(program).arg("man"));
        assert!(whole.contains(".SH SUBCOMMANDS"), "{whole}");
    }
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let help = disk(["--help"]).printed();
    let commands = help.split("Commands:\n").nth(1).unwrap();
    let commands = commands.split("\n\n").next().unwrap();
    for line in commands.lines() {
        let command = line.split_whitespace().next().unwrap();
        if command == "help" {
            continue;
        }
        let text = disk([command, "--help"]).printed();
        let is_plain = ["completions", "man"].contains(&command);
        assert!(is_plain || text.contains("Example"), "{command}");
    }
}
