//! A running VM that other commands attach to.

use serde_json::Value;

use crate::vmcell::{Ended, READY_AND_WAIT, Running, Vmcell};

/// A `vmcell run` with the tag `main` whose command only sleeps. The run and
/// its VM end on drop.
pub(crate) struct SharedVm {
    pub(crate) id: String,
    pub(crate) running: Running,
}

impl SharedVm {
    pub(crate) fn start(test: &str) -> Self {
        Self::start_with(test, &[])
    }

    /// Starts it with more options for `run`.
    pub(crate) fn start_with(test: &str, options: &[&str]) -> Self {
        let id = unique(test);
        let named = ["--id", &id, "--tag", "main"];
        let options = named.iter().chain(options).copied();
        let mut running = Vmcell::run(options, READY_AND_WAIT).start();
        assert_eq!(running.line(), "ready\n", "{id} did not start");
        Self { id, running }
    }

    /// Runs a command in the VM and waits for its end.
    pub(crate) fn exec<'a>(
        &'a self,
        options: impl IntoIterator<Item = &'a str>,
        command: impl IntoIterator<Item = &'a str>,
    ) -> Ended {
        Vmcell::exec(&self.id, options, command).finish()
    }

    /// Starts a command in the background, with a tag.
    #[track_caller]
    pub(crate) fn spawn<'a>(&'a self, tag: &'a str, command: impl IntoIterator<Item = &'a str>) {
        let ended = self.exec(["--detach", "--tag", tag], command);
        ended.assert_printed(&format!("{tag}\n"));
    }

    /// Returns a subcommand of the program, for this VM.
    pub(crate) fn cli<'a>(
        &'a self,
        subcommand: &'a str,
        rest: impl IntoIterator<Item = &'a str>,
    ) -> Vmcell {
        Vmcell::new([subcommand, &self.id].into_iter().chain(rest))
    }

    /// Returns what `ps --json` prints about the process with this tag.
    pub(crate) fn process(&self, tag: &str) -> Option<Value> {
        let ended = self.cli("ps", ["--json"]).finish();
        assert_eq!(ended.code(), 0, "{ended:?}");
        let list = ended.json();
        let mut processes = list["processes"].as_array().unwrap().iter();
        processes.find(|process| process["tag"] == tag).cloned()
    }
}

/// Returns a VM id that no other run of the tests uses.
pub(crate) fn unique(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}
