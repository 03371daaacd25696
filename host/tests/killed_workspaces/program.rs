//! The program that is killed.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::SystemTime,
};

use rustix::process::Pid;

use crate::{
    new,
    random::{Random, SEED},
    task::Task,
    workspaces,
};

/// Names the folder in which it works.
const FOLDER: &str = "VMCELL_TEST_FOLDER";

/// Names what it does first.
const TASK: &str = "VMCELL_TEST_TASK";

/// Changes workspaces until it is killed. Prints `synced N` when N is on the disk of the
/// workspace `main`.
pub(crate) async fn work(folder: &Path) {
    let workspaces = workspaces(folder);
    let mut random = Random::seeded();
    let mut task = Task::named(&std::env::var(TASK).unwrap()).unwrap();
    loop {
        let workspace = match workspaces.get("main").await {
            Ok(workspace) => workspace,
            // With the id of earlier ones.
            Err(_) => {
                let new = new().id(id_of(folder)).name("main");
                workspaces.create(new).await.unwrap()
            }
        };
        if random.below(2) == 0 {
            // Later ones are larger, also those of the next program.
            let number = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
            workspace.start().await.unwrap();
            let line = format!("echo {number} > count && sync");
            let command = vmcell::Command::shell(line);
            assert!(workspace.exec(command).await.unwrap().success());
            println!("synced {number}");
        }
        let done = task.run(&workspaces, &workspace, &mut random).await;
        done.unwrap();
        task = *random.choose(&Task::ALL);
    }
}

/// An id that no other test has at the same time, because its folder is new.
fn id_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Returns where the program that works in a folder has its temporary files.
pub(crate) fn temporary(folder: &Path) -> PathBuf {
    folder.join("temporary")
}

/// A program that runs, and what it has printed.
pub(crate) struct Program {
    process: Child,
    /// What must be on the disk of the workspace `main`.
    synced: Arc<Mutex<Option<u64>>>,
    reading: JoinHandle<()>,
}

impl Program {
    /// Returns the folder in which this program works, if it is the one that is killed.
    pub(crate) fn folder() -> Option<PathBuf> {
        std::env::var_os(FOLDER).map(PathBuf::from)
    }

    /// Starts it, and returns when it begins its task.
    pub(crate) fn start(task: Task, folder: &Path, random: &mut Random) -> Self {
        let temporary = temporary(folder);
        fs::create_dir_all(&temporary).unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture"])
            .env(FOLDER, folder)
            .env(TASK, task.name())
            .env(SEED, random.below(1 << 30).to_string())
            .env("TMPDIR", temporary)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join("program.log")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let synced = Arc::new(Mutex::new(None));
        let seen = synced.clone();
        let read = move |line: &str| {
            let number = line.strip_prefix("synced ");
            if number.is_some() || line == "forget" {
                *seen.lock().unwrap() = number.map(|text| text.parse().unwrap());
            }
            line.starts_with("doing ")
        };
        let log = || fs::read_to_string(folder.join("program.log")).unwrap();
        assert!(
            lines.any(|line| read(&line.unwrap())),
            "{task:?}: {}",
            log()
        );
        let reading = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                read(&line);
            }
        });
        Self {
            process,
            synced,
            reading,
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// Kills it. Returns what it has synced.
    pub(crate) fn kill(mut self) -> Option<u64> {
        // Fails if it has ended, because its keeper was killed.
        let _ = self.process.kill();
        self.process.wait().unwrap();
        self.reading.join().unwrap();
        *self.synced.lock().unwrap()
    }
}
