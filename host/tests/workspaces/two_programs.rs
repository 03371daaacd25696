//! Two programs that do something with the same workspace at once.

use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use vmcell::{
    Error, Vm,
    workspace::{BASELINE, WorkspaceState, Workspaces},
};

use crate::{Store, keepers::keeper, new, shell};

/// Names the folder in which the other program works.
const FOLDER: &str = "VMCELL_TEST_FOLDER";

/// Sets how often each pair of commands is given.
const ROUNDS: &str = "VMCELL_TEST_ROUNDS";

/// What the other programs run: this program, with the name of this test. Each line of its
/// input is a command; it prints `ok`, or the code of the error.
#[tokio::test]
async fn obey() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let workspaces = Workspaces::at(folder).unwrap().keeper(keeper());
    for line in std::io::stdin().lines() {
        let outcome = match carry_out(&workspaces, &line.unwrap()).await {
            Ok(()) => "ok".to_owned(),
            Err(error) => {
                eprintln!("{error}");
                error.code().to_owned()
            }
        };
        println!("{PREFIX}{outcome}");
    }
}

const OBEY: &str = "two_programs::obey";

/// How the lines of the other program begin that are its own.
const PREFIX: &str = "outcome: ";

async fn carry_out(workspaces: &Workspaces, command: &str) -> Result<(), Error> {
    if command == "create" {
        return workspaces.create(new().name("it")).await.map(drop);
    }
    let it = workspaces.get("it").await?;
    match command {
        "start" => it.start().await.map(drop),
        "stop" => it.stop().await,
        "pause" => it.pause().await,
        "snapshot" => it.snapshot("same").await.map(drop),
        "reset" => it.reset(BASELINE).await.map(drop),
        "fork" => it.fork(BASELINE, |new| new.name("fork")).await.map(drop),
        "delete" => it.delete().await,
        _ => panic!("{command}"),
    }
}

/// Another program, which changes the workspace `it`.
pub(crate) struct Program {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub(crate) fn new(folder: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", OBEY, "--nocapture"])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn begin(&mut self, command: &str) {
        let mut stdin = self.process.stdin.as_ref().unwrap();
        writeln!(stdin, "{command}").unwrap();
    }

    /// Has it carry out commands, one after the other.
    pub(crate) fn carry_out(&mut self, commands: &[&str]) {
        for command in commands {
            self.begin(command);
            assert_eq!(self.outcome(), "ok", "{command}");
        }
    }

    fn outcome(&mut self) -> String {
        let mut own = self.lines.by_ref().map(Result::unwrap);
        // The first one may be behind what the test harness prints.
        let outcome = own.find_map(|line| {
            let (_, outcome) = line.split_once(PREFIX)?;
            Some(outcome.to_owned())
        });
        outcome.unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

/// Gives both programs a command at once, and returns what became of them.
fn both(programs: &mut [Program; 2], commands: [&str; 2]) -> [String; 2] {
    for (program, command) in programs.iter_mut().zip(commands) {
        program.begin(command);
    }
    programs.each_mut().map(Program::outcome)
}

/// Returns how many VMs the workspaces have.
async fn vm_count(store: &Store) -> usize {
    let vms = Vm::list().await.unwrap();
    let ids = store.files();
    vms.iter().filter(|vm| ids.contains(&vm.id)).count()
}

#[tokio::test]
async fn two_programs_that_change_the_same_workspace_do_not_disturb_each_other() {
    let store = Store::kept();
    let rounds: u64 = std::env::var(ROUNDS).map_or(1, |text| text.parse().unwrap());
    let programs = &mut [(); 2].map(|()| Program::new(store.root.path()));
    for _ in 0..rounds {
        let mut created = both(programs, ["create"; 2]);
        created.sort();
        assert_eq!(created, ["ok", "workspace-name-taken"]);
        assert_eq!((vm_count(&store).await, store.files().len()), (1, 1));
        let it = store.workspaces.get("it").await.unwrap();
        shell(&it, "echo kept > file; sync").await;

        // The state before, the commands, and what may become of the second one. The first
        // one is always carried out.
        for (is_running, commands, expected) in [
            (true, ["stop", "stop"], vec!["ok"]),
            (false, ["start", "start"], vec!["ok"]),
            (true, ["stop", "start"], vec!["ok"]),
            (true, ["start", "pause"], vec!["ok"]),
            (true, ["stop", "pause"], vec!["ok", "workspace-state"]),
            (true, ["pause", "pause"], vec!["ok"]),
            (true, ["stop", "snapshot"], vec!["ok"]),
            (true, ["start", "fork"], vec!["ok"]),
        ] {
            match is_running {
                true => drop(it.start().await.unwrap()),
                false => it.stop().await.unwrap(),
            }
            let [first, second] = both(programs, commands);
            let case = format!("{commands:?}: {first}, {second}");
            assert_eq!(first, "ok", "{case}");
            assert!(expected.contains(&second.as_str()), "{case}");
            let state = it.info().await.unwrap().state;
            let is_running = state == WorkspaceState::Running;
            assert_eq!(vm_count(&store).await, usize::from(is_running), "{case}");
        }
        it.start().await.unwrap();
        assert_eq!(shell(&it, "cat file").await, "kept\n");
        it.delete_snapshot("same").await.unwrap();
        let fork = store.workspaces.get("fork").await.unwrap();
        fork.delete().await.unwrap();

        let mut taken = both(programs, ["snapshot"; 2]);
        taken.sort();
        assert_eq!(taken, ["ok", "snapshot-name-taken"]);
        let mut forked = both(programs, ["fork"; 2]);
        forked.sort();
        assert_eq!(forked, ["ok", "workspace-name-taken"]);
        let fork = store.workspaces.get("fork").await.unwrap();
        fork.delete().await.unwrap();
        assert_eq!(both(programs, ["reset"; 2]), ["ok"; 2]);
        assert_eq!(shell(&it, "ls").await, "");
        assert_eq!(vm_count(&store).await, 1);

        let second = ["delete", "snapshot", "fork", "start", "stop"];
        for second in second {
            if store.workspaces.get("it").await.is_err() {
                let source = store.workspaces.create(new()).await.unwrap();
                source.stop().await.unwrap();
                source.fork(BASELINE, |new| new.name("it")).await.unwrap();
                source.delete().await.unwrap();
            }
            let outcomes = both(programs, ["delete", second]);
            let case = format!("delete, {second}: {outcomes:?}");
            assert!(outcomes.contains(&"ok".to_owned()), "{case}");
            for outcome in &outcomes {
                assert!(
                    ["ok", "no-such-workspace"].contains(&outcome.as_str()),
                    "{case}"
                );
            }
            if second == "delete" {
                assert!(outcomes.contains(&"no-such-workspace".to_owned()), "{case}");
            }
            if let Ok(fork) = store.workspaces.get("fork").await {
                fork.delete().await.unwrap();
            }
            assert!(store.files().is_empty(), "{case}: {:?}", store.files());
        }
    }
}
