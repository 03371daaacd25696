use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    os::unix::ffi::OsStrExt,
    time::Duration,
};

use bytes::Bytes;
use vmcell_wire::{
    CgroupLimits, PackedStringsBuf, ProcessMode, Request, Rlimit, RlimitsBuf, Start, Stdin,
    limits::MAX_TAG,
};

use super::{OverflowPolicy, Resource, shell};
use crate::{error::Error, hex, random::random_bytes, secret::Secret};

/// A program to run in the guest: arguments, environment, user, limits and
/// input.
///
/// The program is executed directly. No shell is involved unless you ask for
/// one with [`Command::shell`].
///
/// ```
/// use std::time::Duration;
/// use vmcell::Command;
///
/// let command = Command::new("tee")
///     .arg("copy.txt")
///     .env("GREETING", "hello")
///     .user("cell")
///     .current_dir("/workspace")
///     .stdin("from the host\n")
///     .memory_max(64 << 20)
///     .timeout(Duration::from_secs(5));
/// # let _ = command;
/// ```
///
/// Its [`Debug`] shows the names of variables and the length of the input, but
/// neither values nor bytes: they may be secrets.
#[derive(Clone)]
#[must_use]
pub struct Command {
    argv: Vec<OsString>,
    /// Whether the first word is a shell command line, to which the others are
    /// appended.
    is_shell_line: bool,
    env: BTreeMap<OsString, OsString>,
    secrets: BTreeMap<OsString, Secret>,
    default_env: bool,
    current_dir: OsString,
    create_dir: bool,
    user: String,
    umask: Option<u16>,
    nice: i8,
    rlimits: BTreeMap<Resource, (u64, u64)>,
    limits: CgroupLimits,
    tag: Option<String>,
    keep: u32,
    pub(crate) input: Input,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output: usize,
    pub(crate) overflow: OverflowPolicy,
}

/// Where a command's standard input comes from.
///
/// Its [`Debug`] shows the number of bytes, not the bytes.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Input {
    /// Nothing: reading it returns end of file.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Bytes),
    /// Whatever is written with
    /// [`ExecStream::input`](crate::ExecStream::input).
    Stream,
}

impl Command {
    /// How long [`Vm::exec`](crate::Vm::exec) waits by default.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

    /// How many bytes of each output [`Vm::exec`](crate::Vm::exec) collects by
    /// default.
    pub const DEFAULT_MAX_OUTPUT: usize = 16 * 1024 * 1024;

    /// The most bytes of an output that the guest can be asked to
    /// [keep](Self::keep_output).
    pub const MAX_KEPT: u32 = 16 * 1024 * 1024;

    /// Creates a command that runs `program`: a path, or a name that is looked
    /// up in the command's `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self::from_argv([program])
    }

    /// Creates a command from the program and its arguments. No shell
    /// interprets them.
    pub fn from_argv(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            is_shell_line: false,
            env: BTreeMap::new(),
            secrets: BTreeMap::new(),
            default_env: true,
            current_dir: OsString::new(),
            create_dir: false,
            user: String::new(),
            umask: None,
            nice: 0,
            rlimits: BTreeMap::new(),
            limits: CgroupLimits::default(),
            tag: None,
            keep: 0,
            input: Input::Empty,
            timeout: None,
            max_output: Self::DEFAULT_MAX_OUTPUT,
            overflow: OverflowPolicy::Kill,
        }
    }

    /// Creates a command that runs a line with `/bin/sh -c`. Arguments that are
    /// added are quoted, so that the shell does not interpret them, and
    /// appended to the line.
    ///
    /// ```
    /// use vmcell::Command;
    ///
    /// // Runs: ls -l | sort '-k 5' 'it'\''s'
    /// let command = Command::shell("ls -l | sort").args(["-k 5", "it's"]);
    /// # let _ = command;
    /// ```
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self {
            is_shell_line: true,
            ..Self::from_argv([line])
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.argv.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.argv.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. By default a command has `HOME` and `USER`
    /// of its user, `LANG=C.UTF-8` and the usual `PATH`. Nothing of the host's
    /// environment gets into the guest.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets many variables.
    pub fn envs(
        mut self,
        variables: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
    ) -> Self {
        for (name, value) in variables {
            self.env.insert(name.into(), value.into());
        }
        self
    }

    /// Grants it a [secret](crate::secret), as the environment variable `name`. Its value
    /// is masked in all that programs of the VM print from then on.
    pub fn secret_env(mut self, name: impl Into<OsString>, secret: &Secret) -> Self {
        self.secrets.insert(name.into(), secret.clone());
        self
    }

    /// Removes a variable that was [set](Self::env).
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.remove(name.as_ref());
        self.secrets.remove(name.as_ref());
        self
    }

    /// Sets what the caller has left open.
    pub(crate) fn with_defaults(
        mut self,
        user: Option<&str>,
        variables: &BTreeMap<String, String>,
        directory: &str,
    ) -> Self {
        if self.default_env {
            for (name, value) in variables {
                self.env.entry(name.into()).or_insert_with(|| value.into());
            }
        }
        if self.user.is_empty()
            && let Some(user) = user
        {
            self.user = user.to_owned();
        }
        if self.current_dir.is_empty() {
            self.current_dir = directory.into();
        }
        self
    }

    /// Clears the environment, including the defaults such as `PATH`.
    pub fn env_clear(mut self) -> Self {
        self.env.clear();
        self.default_env = false;
        self
    }

    /// Sets the working directory; `/` by default. The command fails to start
    /// if the directory does not exist.
    pub fn current_dir(mut self, directory: impl Into<OsString>) -> Self {
        self.current_dir = directory.into();
        self
    }

    /// Creates the [working directory](Self::current_dir) and its parents if
    /// they do not exist, as the command's user.
    pub fn create_current_dir(mut self) -> Self {
        self.create_dir = true;
        self
    }

    /// Sets the user that the command runs as: `USER` or `USER:GROUP`, names or
    /// numbers; root by default. Names and supplementary groups are looked up
    /// in the image's `/etc/passwd` and `/etc/group`. A number need not be
    /// listed there; its group is then the same number.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = user.into();
        self
    }

    /// Sets the file mode creation mask, for example `0o027`.
    pub fn umask(mut self, mask: u16) -> Self {
        self.umask = Some(mask);
        self
    }

    /// Sets the niceness, -20 (highest priority) to 19 (lowest).
    pub fn nice(mut self, nice: i8) -> Self {
        self.nice = nice;
        self
    }

    /// Limits a resource of each of its processes; `u64::MAX` means no limit.
    pub fn rlimit(mut self, resource: Resource, soft: u64, hard: u64) -> Self {
        self.rlimits.insert(resource, (soft, hard));
        self
    }

    /// Limits the memory that the command and its descendants may use together,
    /// in bytes. If they need more, all of them are killed:
    /// [`Cause::OutOfMemory`](crate::Cause::OutOfMemory).
    pub fn memory_max(mut self, bytes: u64) -> Self {
        self.limits.memory = bytes;
        self
    }

    /// Limits how many processes and threads the command and its descendants
    /// may have at once.
    pub fn pids_max(mut self, count: u32) -> Self {
        self.limits.pids = count;
        self
    }

    /// Limits the processor time that the command and its descendants may use
    /// together, in thousandths of one processor: 500 is half of one.
    pub fn cpu_milli(mut self, thousandths: u32) -> Self {
        self.limits.cpu_milli = thousandths;
        self
    }

    /// Sets a name by which the process can be found, unique in its VM: 1 to 64
    /// letters, digits, dots, hyphens and underscores. The default is `proc-`
    /// and eight hexadecimal digits.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Sets how many bytes of each output the guest keeps for clients that
    /// [attach](crate::Processes::attach) later; 1 MiB by default, at least 16
    /// KiB, at most [`MAX_KEPT`](Self::MAX_KEPT).
    pub fn keep_output(mut self, bytes: u32) -> Self {
        self.keep = bytes;
        self
    }

    /// Gives the command these bytes as its standard input.
    pub fn stdin(mut self, bytes: impl Into<Bytes>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// Lets standard input be written while the command runs: see
    /// [`ExecStream::input`](crate::ExecStream::input).
    pub fn stdin_stream(mut self) -> Self {
        self.input = Input::Stream;
        self
    }

    /// Limits how long the command may run. After that it and all its
    /// descendants are killed: [`Cause::Timeout`](crate::Cause::Timeout).
    ///
    /// The guest enforces the limit by its own clock, even if the host's
    /// program no longer runs. [`Vm::exec`](crate::Vm::exec) also checks the
    /// host's clock.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Limits how many bytes of each output [`Vm::exec`](crate::Vm::exec)
    /// collects.
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    /// Sets what happens when it prints more than
    /// [`max_output`](Self::max_output); by default it is killed.
    pub fn on_overflow(mut self, overflow: OverflowPolicy) -> Self {
        self.overflow = overflow;
        self
    }

    /// Sets a variable unless it is already set.
    #[cfg(feature = "terminal")]
    pub(crate) fn env_default(mut self, name: &str, value: &str) -> Self {
        self.env.entry(name.into()).or_insert_with(|| value.into());
        self
    }

    /// Validates the command, passes the request to `send`, and returns what
    /// that returned and the tag.
    pub(crate) fn with_request<T>(
        &self,
        mode: ProcessMode,
        send: impl FnOnce(&Request<'_>) -> Result<T, Error>,
    ) -> Result<(T, String), Error> {
        self.with_start(mode, |start| send(&Request::Start(start)))
    }

    /// Same as [`with_request`](Self::with_request), for a start that is part
    /// of another request.
    pub(crate) fn with_start<T>(
        &self,
        mode: ProcessMode,
        send: impl FnOnce(Start<'_>) -> Result<T, Error>,
    ) -> Result<(T, String), Error> {
        let argv = self.packed_argv()?;
        let env = self.packed_env()?;
        for (text, what) in [
            (self.current_dir.as_bytes(), "the working directory"),
            (self.user.as_bytes(), "the user"),
        ] {
            if text.contains(&0) {
                return Err(zero_byte(what));
            }
        }
        if !(-20..=19).contains(&self.nice) {
            return Err(invalid(format!("niceness {} is not -20 to 19", self.nice)));
        }
        let mut rlimits = RlimitsBuf::new();
        for (resource, &(soft, hard)) in &self.rlimits {
            if soft > hard {
                return Err(invalid(format!(
                    "the soft limit of {resource:?} is above the hard one"
                )));
            }
            rlimits.push(Rlimit {
                resource: resource.number(),
                soft,
                hard,
            });
        }
        let random: [u8; 12] = random_bytes()?;
        let (ticket, rest) = random.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let ticket = u64::from_le_bytes(*ticket);
        let tag = match &self.tag {
            Some(tag) => valid_tag(tag)?.to_owned(),
            None => format!("proc-{}", hex::encode(rest)),
        };
        let start = Start {
            ticket,
            tag: &tag,
            argv: argv.as_packed(),
            env: env.as_packed(),
            default_env: self.default_env,
            cwd: self.current_dir.as_bytes(),
            make_cwd: self.create_dir,
            user: &self.user,
            umask: self.umask,
            nice: self.nice,
            rlimits: rlimits.as_rlimits(),
            stdin: match self.input {
                Input::Empty => Stdin::Empty,
                Input::Bytes(_) | Input::Stream => Stdin::Stream,
            },
            mode,
            // Zero means no timeout, so a timeout of zero is sent as 1 ms.
            timeout_ms: self.timeout.map_or(0, |timeout| {
                u64::try_from(timeout.as_millis())
                    .unwrap_or(u64::MAX)
                    .max(1)
            }),
            keep: self.keep,
            limits: self.limits,
        };
        let sent = send(start)?;
        Ok((sent, tag))
    }

    /// Returns what a history says about it: argv, working directory and user. Values of
    /// variables are left out, because they may be secrets.
    pub(crate) fn summary(&self) -> (Vec<String>, String, Option<String>) {
        let text = |text: &OsString| text.to_string_lossy().into_owned();
        let argv = match self.is_shell_line {
            true => {
                let line = shell::quoted_line(&self.argv);
                let line = String::from_utf8_lossy(&line).into_owned();
                vec!["/bin/sh".to_owned(), "-c".to_owned(), line]
            }
            false => self.argv.iter().map(text).collect(),
        };
        let user = (!self.user.is_empty()).then(|| self.user.clone());
        (argv, text(&self.current_dir), user)
    }

    /// Returns the program, for logs and errors.
    pub(crate) fn program(&self) -> String {
        let first = self.argv.first().map(|word| word.to_string_lossy());
        first.map(|word| word.into_owned()).unwrap_or_default()
    }

    fn packed_argv(&self) -> Result<PackedStringsBuf, Error> {
        if self.argv.first().is_none_or(|program| program.is_empty()) {
            return Err(invalid("no program is given".to_owned()));
        }
        let mut argv = PackedStringsBuf::new();
        let mut complete = true;
        if self.is_shell_line {
            let line = shell::quoted_line(&self.argv);
            complete = argv.push(b"/bin/sh") && argv.push(b"-c") && argv.push(&line);
        } else {
            for argument in &self.argv {
                complete &= argv.push(argument.as_bytes());
            }
        }
        complete
            .then_some(argv)
            .ok_or_else(|| zero_byte("an argument"))
    }

    fn packed_env(&self) -> Result<PackedStringsBuf, Error> {
        let mut env = PackedStringsBuf::new();
        for name in self.env.keys().chain(self.secrets.keys()) {
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                let name = name.display();
                return Err(invalid(format!("{name:?} cannot name a variable")));
            }
        }
        let mut complete = true;
        let variables = self.env.iter();
        for (name, value) in variables.filter(|(name, _)| !self.secrets.contains_key(*name)) {
            complete &= env.push(&[name.as_bytes(), b"=", value.as_bytes()].concat());
        }
        for (name, secret) in &self.secrets {
            complete &= env.push(&secret.value().masked_variable(name.as_bytes()));
        }
        complete
            .then_some(env)
            .ok_or_else(|| zero_byte("the environment"))
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Destructured without `..`, so that a new field cannot be forgotten
        // here.
        let Self {
            argv,
            is_shell_line,
            env,
            secrets,
            default_env,
            current_dir,
            create_dir,
            user,
            umask,
            nice,
            rlimits,
            limits,
            tag,
            keep,
            input,
            timeout,
            max_output,
            overflow,
        } = self;
        f.debug_struct("Command")
            .field("argv", argv)
            .field("is_shell_line", is_shell_line)
            .field("env", &env.keys())
            .field("secrets", secrets)
            .field("default_env", default_env)
            .field("current_dir", current_dir)
            .field("create_dir", create_dir)
            .field("user", user)
            .field("umask", umask)
            .field("nice", nice)
            .field("rlimits", rlimits)
            .field("limits", limits)
            .field("tag", tag)
            .field("keep", keep)
            .field("input", input)
            .field("timeout", timeout)
            .field("max_output", max_output)
            .field("overflow", overflow)
            .finish()
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Stream => f.write_str("Stream"),
        }
    }
}

fn valid_tag(tag: &str) -> Result<&str, Error> {
    let permitted = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=MAX_TAG).contains(&tag.len()) && tag.bytes().all(permitted) {
        return Ok(tag);
    }
    Err(invalid(format!(
        "{tag:?} cannot be a tag: use 1 to {MAX_TAG} letters, digits, dots, hyphens and underscores"
    )))
}

fn invalid(text: String) -> Error {
    Error::Invalid(text)
}

fn zero_byte(what: &str) -> Error {
    invalid(format!("{what} holds a zero byte"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_printed_without_values_and_input() {
        let command = Command::new("login")
            .env("TOKEN", "s3cret")
            .stdin("passw0rd");
        for printed in [format!("{command:?}"), format!("{command:#?}")] {
            assert!(printed.contains("TOKEN"), "{printed}");
            assert!(printed.contains("8 bytes"), "{printed}");
            for secret in ["s3cret", "passw0rd"] {
                assert!(!printed.contains(secret), "{printed}");
            }
        }
    }
}
