//! A user at a terminal, and the shell that runs the program for them.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    fs::{Mode, OFlags, fcntl_getfl, open},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use crate::processes::Process;

/// Long enough for a VM to boot on a busy machine.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(60);

/// The user's shell: prints the terminal's settings before and after. It waits
/// for Enter at the end, because unread output would be lost when it exits.
const SHELL: &str = r#"
    echo "before:$(stty -g):"
    sh -c 'echo "pid:$$:"; exec "$@"' sh "$@"
    echo "code:$?:"
    echo "after:$(stty -g):"
    read -r enter
"#;

/// A user at a terminal.
pub(crate) struct User {
    terminal: File,
    /// The terminal's device, whose file status flags the user's shell shares.
    device: OwnedFd,
    shell: Child,
    /// Output that the test has not consumed yet.
    unseen: Vec<u8>,
    before: String,
    pid: Pid,
}

/// How the program ended.
#[derive(Debug)]
pub(crate) struct SessionEnd {
    pub(crate) code: i32,
    /// Output that the test has not consumed yet.
    pub(crate) printed: String,
}

impl User {
    /// Runs the program on a terminal of 80 columns and 24 rows.
    pub(crate) fn run<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Self {
        Self::run_with(arguments, &[])
    }

    /// The same with more environment variables.
    pub(crate) fn run_with<'a>(
        arguments: impl IntoIterator<Item = &'a str>,
        variables: &[(&str, &str)],
    ) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(flags).unwrap();
        unlockpt(&terminal).unwrap();
        let path = ptsname(&terminal, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let device = open(path, flags, Mode::empty()).unwrap();
        let side = || Stdio::from(device.try_clone().unwrap());
        tcsetwinsize(&terminal, size(80, 24)).unwrap();
        let shell = Command::new("setsid")
            .args([
                "--ctty",
                "sh",
                "-c",
                SHELL,
                "sh",
                env!("CARGO_BIN_EXE_vmcell"),
            ])
            .args(arguments)
            .env_remove("VMCELL_LOG")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .unwrap();
        let mut user = Self {
            terminal: terminal.into(),
            device,
            shell,
            unseen: Vec::new(),
            before: String::new(),
            pid: Pid::INIT,
        };
        user.before = user.field("before:");
        user.pid = Pid::from_raw(user.field("pid:").parse().unwrap()).unwrap();
        user
    }

    /// Waits until a text is printed. Returns the output before it.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) -> String {
        let deadline = Instant::now() + OUTPUT_TIMEOUT;
        loop {
            let mut places = self.unseen.windows(text.len());
            if let Some(place) = places.position(|piece| piece == text.as_bytes()) {
                let rest = self.unseen.split_off(place + text.len());
                let before = std::mem::replace(&mut self.unseen, rest);
                // A terminal that does not read UTF-8 would interpret single
                // bytes from 0x80 to 0x9F.
                let text = String::from_utf8(before[..place].to_vec());
                return text.expect("no lone byte reaches a terminal");
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let printed = self.read(left);
            assert!(printed, "{text:?} is not in {}", self.unseen.escape_ascii());
        }
    }

    /// Types a line and Enter.
    pub(crate) fn enters(&mut self, line: &str) {
        self.types(&[line, "\r"].concat());
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).unwrap();
    }

    /// Resizes the window.
    pub(crate) fn resizes(&self, columns: u16, rows: u16) {
        tcsetwinsize(&self.terminal, size(columns, rows)).unwrap();
    }

    pub(crate) fn signals(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Returns the process of the program.
    pub(crate) fn program(&self) -> Process {
        Process::only_child_of(self.shell.id())
    }

    /// Returns the PID of the program.
    pub(crate) fn pid(&self) -> u32 {
        u32::try_from(self.pid.as_raw_nonzero().get()).unwrap()
    }

    /// Returns whether the terminal echoes input.
    pub(crate) fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        modes.contains(LocalModes::ECHO)
    }

    /// Waits for the end of the program, and asserts that the terminal is
    /// restored.
    #[track_caller]
    pub(crate) fn finish(mut self) -> SessionEnd {
        let printed = self.sees("code:");
        let code = self.sees(":").parse().unwrap();
        assert_eq!(
            self.field("after:"),
            self.before,
            "the terminal was changed"
        );
        let flags = fcntl_getfl(&self.device).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK), "it is non-blocking");
        self.types("\r");
        self.shell.wait().unwrap();
        SessionEnd { code, printed }
    }

    fn field(&mut self, name: &str) -> String {
        self.sees(name);
        self.sees(":\r\n")
    }

    /// Reads output. Returns `false` if none came in time.
    fn read(&mut self, time: Duration) -> bool {
        let mut poll_fds = [PollFd::new(&self.terminal, PollFlags::IN)];
        let time = Timespec::try_from(time).unwrap();
        if poll(&mut poll_fds, Some(&time)).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 65536];
        let count = self.terminal.read(&mut buffer).unwrap_or(0);
        self.unseen.extend_from_slice(&buffer[..count]);
        count > 0
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // The terminal hangs up, which ends the program too.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Returns whether SIGHUP would reach child processes: not under `nohup`.
pub(crate) fn has_sighup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 0
}
