//! The commands and options of the two programs, from their own help.

use std::{
    collections::BTreeSet,
    process::{Command, Output, Stdio},
};

/// A program of this package.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    path: &'static str,
}

pub(crate) const VMCELL: Program = Program {
    name: "vmcell",
    path: env!("CARGO_BIN_EXE_vmcell"),
};
pub(crate) const DISK_TOOL: Program = Program {
    name: "vmcell-disk",
    path: env!("CARGO_BIN_EXE_vmcell-disk"),
};

impl Program {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [VMCELL, DISK_TOOL]
            .into_iter()
            .find(|program| program.name == name)
    }

    /// Has the program parse arguments without executing them: `--help` follows them, and takes effect only if all
    /// before it were valid. What follows `--` belongs to the guest, and without it what follows the ID of `exec`.
    pub(crate) fn check(self, arguments: &[String]) -> Result<(), String> {
        let arguments = match arguments {
            [exec, id, ..] if exec == "exec" && !arguments.iter().any(|word| word == "--") => {
                &[exec.clone(), id.clone()][..]
            }
            _ => arguments,
        };
        let own = arguments.iter().take_while(|word| *word != "--");
        let output = self.run(own.map(String::as_str).chain(["--help"]));
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Returns the names of the commands, without `help`.
    pub(crate) fn commands(self) -> Vec<String> {
        subcommands(&self.help(&[]))
    }

    /// Returns the long options of a command and of its subcommands, without `--help`.
    pub(crate) fn options(self, command: &str) -> BTreeSet<String> {
        let mut options = BTreeSet::new();
        self.collect_options(&[command], &mut options);
        options.remove("--help");
        options
    }

    fn collect_options(self, command: &[&str], options: &mut BTreeSet<String>) {
        let help = self.help(command);
        options.extend(listed_options(&help));
        for subcommand in subcommands(&help) {
            self.collect_options(&[command, &[&subcommand]].concat(), options);
        }
    }

    fn help(self, command: &[&str]) -> String {
        let output = self.run(command.iter().copied().chain(["--help"]));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn run<'a>(self, arguments: impl Iterator<Item = &'a str>) -> Output {
        let mut command = Command::new(self.path);
        command.args(arguments).stdin(Stdio::null());
        command.output().unwrap()
    }
}

/// Returns the long options that a text mentions.
pub(crate) fn mentioned_options(text: &str) -> BTreeSet<String> {
    let mut options = BTreeSet::new();
    for (start, _) in text.match_indices("--") {
        let is_start = !text[..start].ends_with(|c: char| c.is_alphanumeric() || c == '-');
        let rest = &text[start + 2..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let name = rest[..end.unwrap_or(rest.len())].trim_end_matches('-');
        if is_start && name.starts_with(|c: char| c.is_ascii_lowercase()) {
            options.insert(format!("--{name}"));
        }
    }
    options
}

/// Returns the options that a help text lists: those that begin a line, and aliases. Descriptions have a deeper indent.
fn listed_options(help: &str) -> BTreeSet<String> {
    let mut options = BTreeSet::new();
    for line in help.lines() {
        let text = line.trim_start();
        if text.starts_with('-') && line.len() - text.len() <= 6 {
            let listed = text.split("  ").next().unwrap_or_default();
            options.extend(mentioned_options(listed));
        }
        if let Some((_, aliases)) = line.split_once("[alias") {
            options.extend(mentioned_options(aliases));
        }
    }
    options
}

fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !["", "help"].contains(name));
    names.map(str::to_owned).collect()
}

#[test]
fn arguments_that_a_program_rejects_are_found() {
    let check = |line: &str| VMCELL.check(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(
        check("run base --publish 8080 -- uname --no-such-option"),
        Ok(())
    );
    for wrong in [
        "rum",
        "run --no-such-option",
        "run --publish x",
        "service begin a b",
    ] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn options_are_read_from_help_texts_and_pages() {
    let run = VMCELL.options("run");
    assert!(
        run.contains("--publish") && run.contains("--env-file"),
        "{run:?}"
    );
    assert!(VMCELL.options("service").contains("--no-wait"));
    assert!(DISK_TOOL.options("ls").contains("--in-use"));
    assert!(VMCELL.commands().contains(&"completions".to_owned()));
    let mentioned = mentioned_options("`--a-b`, --c=d; a--e and ---");
    assert_eq!(mentioned.into_iter().collect::<Vec<_>>(), ["--a-b", "--c"]);
}
