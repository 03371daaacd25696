//! What was run in a workspace: a file for each command, with a line when it begins and
//! one when it has ended. The program that runs the command has the file locked.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    command_record::{CommandRecord, CommandState, RecordedOutput},
    lock::FileLock,
    timestamp::Timestamp,
};
use crate::{
    error::Error,
    hex,
    process::{Cause, Command, ExecEvent, ExecRecorder, OutputKind},
};

/// The history of a workspace.
#[derive(Clone, Debug)]
pub(super) struct History {
    folder: PathBuf,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Beginning {
    argv: Vec<String>,
    cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    began: Timestamp,
}

/// The second line.
#[derive(Debug, Serialize, Deserialize)]
struct Ending {
    ended: Timestamp,
    /// Without it, `error` says why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    stdout: OutputRecord,
    stderr: OutputRecord,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct OutputRecord {
    text: String,
    bytes: u64,
    sha256: String,
}

/// A command that is being recorded.
#[derive(Debug)]
pub(super) struct Recording {
    file: File,
    _lock: FileLock,
    stdout: OutputTail,
    stderr: OutputTail,
    /// Why it is about to be killed.
    cause: Option<Cause>,
    has_ended: bool,
}

/// The end of an output.
#[derive(Debug, Default)]
struct OutputTail {
    last: Vec<u8>,
    bytes: u64,
    digest: Sha256,
}

/// How many commands may run at once, for [`History::has_running`].
const LAST: usize = 100;

/// The size of the largest file that is read.
const MAX_SIZE: u64 = 4 << 20;

impl History {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Records that a command begins. `last` is the number of the last one that the caller
    /// knows of, or 0, and becomes the number of this one.
    pub(super) fn begin(&self, command: &Command, last: &AtomicU64) -> io::Result<Recording> {
        let (argv, cwd, user) = command.summary();
        let beginning = Beginning {
            argv,
            cwd,
            user,
            began: Timestamp::now(),
        };
        let (number, mut file) = self.create_next(last.load(Ordering::Relaxed))?;
        let path = self.path(number);
        // Readers take a file that is not locked for that of a program that has died.
        let lock = FileLock::try_take(&path)?.ok_or(io::ErrorKind::WouldBlock)?;
        let written = line(&beginning).and_then(|line| file.write_all(&line));
        if let Err(error) = written {
            // It would count as a command.
            fs::remove_file(&path)?;
            return Err(error);
        }
        last.store(number, Ordering::Relaxed);
        Ok(Recording {
            file,
            _lock: lock,
            stdout: OutputTail::default(),
            stderr: OutputTail::default(),
            cause: None,
            has_ended: false,
        })
    }

    /// Creates the file of the next command, and returns its number. Lists the folder only
    /// if `known` is not the last one: that takes the longer the more commands there are.
    fn create_next(&self, known: u64) -> io::Result<(u64, File)> {
        let mut options = File::options();
        options.append(true).create_new(true).mode(0o600);
        let mut last = match known > 0 && self.path(known).exists() {
            true => known,
            false => {
                self.create_folder()?;
                self.last_number()
            }
        };
        loop {
            let number = last + 1;
            match options.open(self.path(number)) {
                // Another program was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    last = self.last_number();
                }
                created => return Ok((number, created?)),
            }
        }
    }

    fn create_folder(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn last_number(&self) -> u64 {
        self.numbers().max().unwrap_or(0)
    }

    /// Returns all commands, the oldest first.
    pub(super) fn list(&self) -> Vec<CommandRecord> {
        let mut numbers: Vec<_> = self.numbers().collect();
        numbers.sort_unstable();
        numbers
            .into_iter()
            .filter_map(|number| self.read(number))
            .collect()
    }

    /// Returns how many commands there are.
    pub(super) fn count(&self) -> u64 {
        self.numbers().count() as u64
    }

    /// Returns whether one of the last commands runs.
    pub(super) fn has_running(&self) -> bool {
        let mut numbers: Vec<_> = self.numbers().collect();
        numbers.sort_unstable();
        let mut last = numbers.into_iter().rev().take(LAST);
        last.any(|number| FileLock::is_held(&self.path(number)).unwrap_or(false))
    }

    /// Forgets everything.
    pub(super) fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:08}.json"))
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let name = entry.file_name();
            let number: u32 = name.to_str()?.strip_suffix(".json")?.parse().ok()?;
            Some(number.into())
        })
    }

    /// Returns a command; `None` if nothing was written yet.
    fn read(&self, number: u64) -> Option<CommandRecord> {
        let path = self.path(number);
        // First: a command that ends meanwhile has its second line then.
        let is_running = FileLock::is_held(&path).unwrap_or(false);
        CommandRecord::parse(number, is_running, &read_bounded(&path).ok()?)
    }
}

impl CommandRecord {
    /// Reads the lines of a file. Returns `None` without a first one.
    pub(super) fn parse(number: u64, is_running: bool, text: &[u8]) -> Option<Self> {
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        let mut next = || lines.next().filter(|line| line.ends_with(b"\n"));
        let beginning: Beginning = serde_json::from_slice(next()?).ok()?;
        let ending = next().and_then(|line| serde_json::from_slice::<Ending>(line).ok());
        let mut record = CommandRecord {
            number,
            argv: beginning.argv,
            cwd: beginning.cwd,
            user: beginning.user,
            began: beginning.began.time(),
            ended: None,
            state: match is_running {
                true => CommandState::Running,
                false => CommandState::Interrupted,
            },
            stdout: RecordedOutput::default(),
            stderr: RecordedOutput::default(),
        };
        if let Some(ending) = ending {
            record.ended = Some(ending.ended.time());
            record.state = match (ending.cause, ending.error) {
                (Some(cause), _) => CommandState::Ended {
                    cause,
                    code: ending.code,
                },
                (None, error) => CommandState::Failed(error.unwrap_or_default()),
            };
            record.stdout = ending.stdout.into();
            record.stderr = ending.stderr.into();
        }
        Some(record)
    }
}

impl Recording {
    /// Records how the command ended, once.
    fn end(&mut self, cause: Option<Cause>, error: Option<String>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let cause = self.cause.or(cause);
        let ending = Ending {
            ended: Timestamp::now(),
            cause: cause.map(|cause| cause.name().to_owned()),
            code: match cause {
                Some(Cause::Code(code)) => Some(code),
                _ => None,
            },
            error,
            stdout: self.stdout.record(),
            stderr: self.stderr.record(),
        };
        let written = line(&ending).and_then(|line| self.file.write_all(&line));
        if let Err(error) = written {
            // The command has ended nevertheless.
            tracing::warn!(%error, "cannot record the end of a command");
        }
    }
}

impl ExecRecorder for Recording {
    fn event(&mut self, event: &ExecEvent) {
        match event {
            ExecEvent::Stdout(bytes) => self.stdout.add(bytes),
            ExecEvent::Stderr(bytes) => self.stderr.add(bytes),
            ExecEvent::Gap { output, bytes } => match output {
                OutputKind::Stdout => self.stdout.bytes += bytes,
                OutputKind::Stderr => self.stderr.bytes += bytes,
            },
            ExecEvent::Exited(exit) => self.end(Some(exit.cause), None),
            ExecEvent::Started { .. } => {}
        }
    }

    fn killed_for(&mut self, cause: Cause) {
        self.cause = Some(cause);
    }

    fn failed(&mut self, error: &Error) {
        self.end(error.cause(), Some(error.to_string()));
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // The guest was asked to kill it, and has not confirmed it.
        if self.cause.is_some() {
            self.end(None, None);
        }
    }
}

impl OutputTail {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.digest.update(bytes);
        self.last.extend_from_slice(bytes);
        // Not at each call, so that each byte is moved once only.
        if self.last.len() >= 2 * RecordedOutput::MAX {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let excess = self.last.len().saturating_sub(RecordedOutput::MAX);
        self.last.drain(..excess);
    }

    fn record(&mut self) -> OutputRecord {
        self.cut();
        OutputRecord {
            text: String::from_utf8_lossy(&self.last).into_owned(),
            bytes: self.bytes,
            sha256: hex::encode(&self.digest.finalize_reset()),
        }
    }
}

impl From<OutputRecord> for RecordedOutput {
    fn from(record: OutputRecord) -> Self {
        Self {
            text: record.text,
            bytes: record.bytes,
            sha256: record.sha256,
        }
    }
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    match fs::metadata(path)?.len() {
        0..=MAX_SIZE => fs::read(path),
        _ => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_running_until_it_has_ended_or_its_recorder_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path().join("history"));
        assert!(history.list().is_empty());
        let command = Command::from_argv(["echo", "a b"])
            .env("SECRET", "hidden")
            .user("me");
        let last = AtomicU64::default();
        let mut first = history.begin(&command, &last).unwrap();
        let second = history.begin(&Command::shell("true"), &last).unwrap();
        let list = history.list();
        assert_eq!(list[0].argv, ["echo", "a b"]);
        assert_eq!(list[0].user.as_deref(), Some("me"));
        assert_eq!((list[0].number, list[1].number), (1, 2));
        assert!(list.iter().all(|it| it.state == CommandState::Running));
        assert!(history.has_running());
        first.failed(&Error::Paused);
        drop(first);
        drop(second);
        let list = history.list();
        assert!(matches!(list[0].state, CommandState::Failed(_)), "{list:?}");
        assert_eq!(list[1].state, CommandState::Interrupted);
        assert!(!history.has_running());
        let text = fs::read_to_string(history.path(1)).unwrap();
        assert!(!text.contains("hidden"), "{text}");
        assert_eq!(history.count(), 2);
        history.clear().unwrap();
        history.clear().unwrap();
        assert_eq!(history.count(), 0);
    }

    #[test]
    fn commands_are_numbered_whatever_a_program_knows_of_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path().join("history"));
        let command = Command::new("true");
        let [ours, theirs] = [const { AtomicU64::new(0) }; 2];
        for last in [&ours, &ours, &theirs, &theirs, &ours] {
            history.begin(&command, last).unwrap();
        }
        let numbers = || {
            history
                .list()
                .iter()
                .map(|it| it.number)
                .collect::<Vec<_>>()
        };
        assert_eq!(numbers(), [1, 2, 3, 4, 5]);
        history.clear().unwrap();
        for last in [&theirs, &ours] {
            history.begin(&command, last).unwrap();
        }
        assert_eq!(numbers(), [1, 2]);
    }

    #[test]
    fn of_a_long_output_the_end_is_kept() {
        let mut tail = OutputTail::default();
        for _ in 0..5 {
            tail.add(&b"a".repeat(RecordedOutput::MAX / 2 + 1));
        }
        tail.add(b"end");
        assert!(tail.last.len() < 3 * RecordedOutput::MAX);
        let bytes = tail.bytes;
        let output = RecordedOutput::from(tail.record());
        assert!(output.text.ends_with("aend") && output.is_cut());
        assert_eq!(output.text.len(), RecordedOutput::MAX);
        assert_eq!(
            (output.bytes, bytes),
            (bytes, 5 * (RecordedOutput::MAX as u64 / 2 + 1) + 3)
        );
    }

    #[test]
    fn a_line_that_is_not_whole_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path().to_owned());
        let last = AtomicU64::default();
        drop(history.begin(&Command::new("true"), &last).unwrap());
        let mut file = File::options().append(true).open(history.path(1)).unwrap();
        file.write_all(b"{\"ended\":1,\"cause\":\"code\"").unwrap();
        assert_eq!(history.list()[0].state, CommandState::Interrupted);
        fs::write(history.path(2), "{").unwrap();
        assert_eq!(history.list().len(), 1);
    }
}
