//! A user at a terminal, with a shell that runs the program for them.

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

/// Long enough for a VM to boot on a machine that does many other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the user's shell does: tells how the terminal is, before and after. It
/// stays until the user has read all of that, because what is on its way is
/// lost with it.
const SHELL: &str = r#"
    echo "before:$(stty -g):"
    sh -c 'echo "pid:$$:"; exec "$@"' sh "$@"
    echo "code:$?:"
    echo "after:$(stty -g):"
    read -r enter
"#;

/// The user and all they have.
pub(crate) struct User {
    terminal: File,
    /// The other side, whose flags the user's shell shares.
    device: OwnedFd,
    shell: Child,
    /// What was printed and not yet looked at.
    unseen: Vec<u8>,
    before: String,
    pid: Pid,
}

/// What the user sees at the end.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) code: i32,
    /// What was printed and not yet looked at.
    pub(crate) printed: String,
}

impl User {
    /// Runs the program on a terminal of 80 columns and 24 rows.
    pub(crate) fn run<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Self {
        Self::run_with(arguments, &[])
    }

    /// The same with more variables in its environment.
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

    /// Waits until something is printed. Answers what came before it.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut places = self.unseen.windows(text.len());
            if let Some(place) = places.position(|piece| piece == text.as_bytes()) {
                let rest = self.unseen.split_off(place + text.len());
                let before = std::mem::replace(&mut self.unseen, rest);
                // A terminal that reads no UTF-8 would obey lone bytes from 0x80 to 0x9F.
                let text = String::from_utf8(before[..place].to_vec());
                return text.expect("no lone byte reaches a terminal");
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let printed = self.read(left);
            assert!(printed, "{text:?} is not in {}", self.unseen.escape_ascii());
        }
    }

    /// Types something, and Enter.
    pub(crate) fn enters(&mut self, line: &str) {
        self.types(&[line, "\r"].concat());
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).unwrap();
    }

    /// Gives the window another size.
    pub(crate) fn resizes(&self, columns: u16, rows: u16) {
        tcsetwinsize(&self.terminal, size(columns, rows)).unwrap();
    }

    pub(crate) fn signals(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// The program.
    pub(crate) fn program(&self) -> Process {
        Process::only_child_of(self.shell.id())
    }

    /// The number of the program.
    pub(crate) fn pid(&self) -> u32 {
        u32::try_from(self.pid.as_raw_nonzero().get()).unwrap()
    }

    /// Whether the terminal shows by itself what is typed.
    pub(crate) fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        modes.contains(LocalModes::ECHO)
    }

    /// Waits for the end of the program, and asserts that the terminal is as it
    /// was before.
    #[track_caller]
    pub(crate) fn left(mut self) -> Left {
        let printed = self.sees("code:");
        let code = self.sees(":").parse().unwrap();
        assert_eq!(
            self.field("after:"),
            self.before,
            "the terminal was changed"
        );
        let flags = fcntl_getfl(&self.device).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK), "nobody waits for input");
        self.types("\r");
        self.shell.wait().unwrap();
        Left { code, printed }
    }

    fn field(&mut self, name: &str) -> String {
        self.sees(name);
        self.sees(":\r\n")
    }

    /// Reads something. False: nothing came in time.
    fn read(&mut self, time: Duration) -> bool {
        let mut wanted = [PollFd::new(&self.terminal, PollFlags::IN)];
        let time = Timespec::try_from(time).unwrap();
        if poll(&mut wanted, Some(&time)).unwrap() == 0 {
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
        // It takes the program with it: the terminal hangs up.
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
