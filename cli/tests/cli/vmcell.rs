//! Starts the program and waits for it, with a timeout.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::processes::Process;

/// Long enough for a VM to boot on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Prints a line when it has started, and sleeps.
pub(crate) const READY_AND_WAIT: [&str; 3] = ["sh", "-c", "echo ready; exec sleep 1000"];

/// The user ID of another user than the one who runs the tests.
pub(crate) const OTHER_UID: u32 = 65534;

/// A run of the program that is not started yet.
pub(crate) struct Vmcell(Command);

/// A running program, killed on drop.
pub(crate) struct Running {
    child: Child,
    process: Process,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    /// Lines that were not read yet.
    stderr: mpsc::Receiver<String>,
}

/// The exit status, and all output that was not read before.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Vmcell {
    pub(crate) fn new(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmcell"));
        command
            .args(arguments)
            .env_remove("VMCELL_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command)
    }

    /// A shell command line that executes the program.
    pub(crate) fn shell(line: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", line])
            .env_remove("VMCELL_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command)
    }

    /// `vmcell run` with options, for a command.
    pub(crate) fn run<'a>(
        options: impl IntoIterator<Item = &'a str>,
        command: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let arguments = ["run"].into_iter().chain(options);
        Self::new(arguments.chain(["--"]).chain(command))
    }

    /// `vmcell exec` with options, for a command in a VM.
    pub(crate) fn exec<'a>(
        id: &'a str,
        options: impl IntoIterator<Item = &'a str>,
        command: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let arguments = ["exec", id].into_iter().chain(options);
        Self::new(arguments.chain(["--"]).chain(command))
    }

    /// Runs it as another user, from a copy of the program which that user can
    /// read. Needs root.
    pub(crate) fn by_other_user(self, program: &Path) -> Self {
        let mut command = Command::new(program);
        command
            .args(self.0.get_args())
            .current_dir("/")
            .uid(OTHER_UID)
            .gid(OTHER_UID)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    pub(crate) fn env_remove(mut self, name: &str) -> Self {
        self.0.env_remove(name);
        self
    }

    pub(crate) fn current_dir(mut self, folder: &Path) -> Self {
        self.0.current_dir(folder);
        self
    }

    /// Returns the command that starts it.
    pub(crate) fn into_command(self) -> Command {
        self.0
    }

    pub(crate) fn start(mut self) -> Running {
        let mut child = self.0.spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        Running {
            process: Process::of_child(&child),
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(BufReader::new),
            stderr: lines_of(BufReader::new(stderr)),
            child,
        }
    }

    /// Runs it to its end, with standard input open and empty.
    pub(crate) fn finish(self) -> Ended {
        self.start().finish()
    }
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next line of standard output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.stdout.as_mut().unwrap();
        stdout.read_line(&mut line).unwrap();
        line
    }

    /// Returns the next line of standard error.
    pub(crate) fn stderr_line(&mut self) -> String {
        let line = self.stderr.recv_timeout(TEST_TIMEOUT);
        line.unwrap_or_else(|error| panic!("no line on standard error: {error}"))
    }

    /// Writes to standard input from a separate thread, and closes it.
    pub(crate) fn write_all_and_close(&mut self, bytes: Vec<u8>) -> JoinHandle<()> {
        let mut stdin = self.stdin.take().unwrap();
        thread::spawn(move || stdin.write_all(&bytes).unwrap())
    }

    /// Writes to standard input.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Closes standard input.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes the reading end of its standard output.
    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.process.pid, signal).unwrap();
    }

    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        self.process.ends_within(time)
    }

    /// Reads all output until the program ends.
    pub(crate) fn finish(mut self) -> Ended {
        let stdout = self.stdout.take();
        let stdout = thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stdout) = stdout {
                stdout.read_to_end(&mut bytes).unwrap();
            }
            bytes
        });
        let in_time = self.ends_within(TEST_TIMEOUT);
        // Ends the threads too, if the program has not ended.
        let _ = self.child.kill();
        let status = self.child.wait().unwrap();
        let ended = Ended {
            status,
            stdout: stdout.join().unwrap(),
            stderr: self.stderr.iter().collect(),
        };
        assert!(in_time, "timed out: {ended:?}");
        ended
    }
}

/// Calls a condition until it holds, and returns whether it did in time.
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while Instant::now() < deadline {
        if is_so() {
            return true;
        }
    }
    false
}

/// Reads lines, with their line breaks, in a separate thread.
fn lines_of(mut reader: impl BufRead + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 || sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Returns the exit code. Panics if a signal killed the program.
    pub(crate) fn code(&self) -> i32 {
        let code = self.status.code();
        code.unwrap_or_else(|| panic!("signal {:?}: {self:?}", self.status.signal()))
    }

    /// Parses standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts success without messages and with this output.
    #[track_caller]
    pub(crate) fn assert_printed(&self, stdout: &str) {
        assert_eq!((self.code(), self.stderr.as_str()), (0, ""), "{self:?}");
        assert_eq!(self.stdout(), stdout);
    }

    pub(crate) fn stdout(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Asserts the exit code, and that standard error contains `words` and
    /// starts with the program's name.
    #[track_caller]
    pub(crate) fn assert_failed(&self, code: i32, words: &str) {
        assert_eq!(self.code(), code, "{self:?}");
        assert!(self.stderr.starts_with("vmcell: "), "{self:?}");
        assert!(self.stderr.contains(words), "{self:?}");
        assert_eq!(self.stdout(), "");
    }
}
