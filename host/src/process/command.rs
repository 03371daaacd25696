use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    time::Duration,
};

use bytes::Bytes;
use vmcell_wire::{Exec, PackedBuf, Request, Stdin};

use crate::error::Error;

/// A program to run in the guest, with everything it gets.
///
/// The program is executed as it is: there is no shell unless you name one.
///
/// ```
/// use std::time::Duration;
/// use vmcell::Command;
///
/// let command = Command::new("sh")
///     .args(["-c", "echo $GREETING; cat"])
///     .env("GREETING", "hello")
///     .current_dir("/workspace")
///     .stdin("from the host\n")
///     .timeout(Duration::from_secs(5));
/// # let _ = command;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Command {
    argv: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    current_dir: OsString,
    pub(crate) input: Input,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output: usize,
}

/// Where a command's standard input comes from.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Input {
    /// It is empty.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Bytes),
    /// What is written with [`ExecStream::input`](crate::ExecStream::input).
    Stream,
}

impl Command {
    /// How long [`Vm::exec`](crate::Vm::exec) waits if no timeout is set.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

    /// How many bytes of each output [`Vm::exec`](crate::Vm::exec) collects if
    /// no other limit is set.
    pub const DEFAULT_MAX_OUTPUT: usize = 16 * 1024 * 1024;

    /// Runs `program`: a path, or a name that is looked up in the guest's
    /// `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self::from_argv([program])
    }

    /// Runs the first word with the others as its arguments.
    pub fn from_argv(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let defaults = [
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
            (
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            ),
            ("USER", "root"),
        ];
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: defaults
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            current_dir: OsString::new(),
            input: Input::Empty,
            timeout: None,
            max_output: Self::DEFAULT_MAX_OUTPUT,
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

    /// Sets a variable of the environment, which otherwise has only `HOME`,
    /// `LANG`, `PATH` and `USER`. Nothing of the host's environment gets into
    /// the guest.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Empties the environment.
    pub fn env_clear(mut self) -> Self {
        self.env.clear();
        self
    }

    /// Where the command runs; `/` if not set.
    pub fn current_dir(mut self, directory: impl Into<OsString>) -> Self {
        self.current_dir = directory.into();
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

    /// How long the command may take, by the host's clock. It and all its
    /// descendants are ended then.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How many bytes of each output [`Vm::exec`](crate::Vm::exec) collects
    /// before it ends the command.
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    /// Hands the request to `send`, if it makes sense.
    pub(crate) fn with_request<T>(
        &self,
        send: impl FnOnce(&Request<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let zero_byte = |what| Error::Invalid(format!("{what} holds a zero byte"));
        if self.argv.first().is_none_or(|program| program.is_empty()) {
            return Err(Error::Invalid("no program is named".to_owned()));
        }
        let mut argv = PackedBuf::new();
        for argument in &self.argv {
            if !argv.push(argument.as_bytes()) {
                return Err(zero_byte("an argument"));
            }
        }
        let mut env = PackedBuf::new();
        for (name, value) in &self.env {
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                let name = name.display();
                return Err(Error::Invalid(format!("{name:?} cannot be a variable")));
            }
            let variable = [name.as_bytes(), b"=", value.as_bytes()].concat();
            if !env.push(&variable) {
                return Err(zero_byte("the environment"));
            }
        }
        if self.current_dir.as_bytes().contains(&0) {
            return Err(zero_byte("the working directory"));
        }
        send(&Request::Exec(Exec {
            argv: argv.as_packed(),
            env: env.as_packed(),
            cwd: self.current_dir.as_bytes(),
            stdin: match self.input {
                Input::Empty => Stdin::Empty,
                Input::Bytes(_) | Input::Stream => Stdin::Stream,
            },
        }))
    }

    /// The program, for logs.
    pub(crate) fn program(&self) -> &OsStr {
        self.argv
            .first()
            .map(OsString::as_os_str)
            .unwrap_or_default()
    }
}
