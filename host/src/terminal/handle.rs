use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::task::AbortHandle;
use vmcell_wire::{
    Attached, Outcome, Request, Selector,
    terminal::{InputKind, TerminalRequest, WriteInput},
};
use zeroize::Zeroizing;

use super::{
    Exchange, Expect, Follow, KeyPress, Screen, TerminalInfo, TerminalInput, TerminalOptions,
    TerminalSize,
    exchange::Action,
    model::{EndReason, Model},
    options::compile_regex,
    reader::Reader,
    record::Interaction,
    record_thread::RecordThread,
    shared::Shared,
    terminals::wire_size,
    tty_state::TtyState,
};
use crate::{
    error::Error,
    process::{ExecFailure, Exit, ProcessId, Signal},
    session::{Stream, StreamInput},
    vm::Vm,
};

/// A terminal in a VM. A background task reads its output all the time, into a
/// transcript and onto a screen, so viewing either takes no output away from
/// other readers.
///
/// Handles are cheap to clone and all refer to the same terminal. After the last
/// one is dropped, the terminal keeps running in the guest and can be
/// [attached to](super::Terminals::attach) again.
///
/// ```no_run
/// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
/// use std::time::Duration;
/// use vmcell::terminal::{Prompt, TerminalOptions};
///
/// let terminal = vm.terminals().open(TerminalOptions::new()).await?;
/// let reply = terminal.run("python3").timeout(Duration::from_secs(10)).await?;
/// assert_eq!(reply.prompt, Prompt::Python);
/// let reply = terminal.run("6 * 7").await?;
/// assert!(reply.text.contains("42"));
/// terminal.send_control('d').await?;
/// println!("{}", terminal.screen().text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Terminal {
    core: Arc<Core>,
}

pub(super) struct Core {
    pub(super) vm: Vm,
    pub(super) shared: Arc<Shared>,
    pub(super) id: ProcessId,
    pub(super) pid: u32,
    pub(super) input: StreamInput,
    pub(super) quiet: Option<Duration>,
    pub(super) timeout: Duration,
    reader: AbortHandle,
}

/// A stream that is attached to a terminal, from which a handle is made.
pub(super) struct Connection {
    pub(super) vm: Vm,
    pub(super) stream: Stream,
    pub(super) attached: Attached,
    pub(super) writer: u64,
    /// Whether this call opened the terminal, rather than attached to it.
    pub(super) newly_opened: bool,
}

impl Terminal {
    pub(super) async fn start(from: Connection, options: TerminalOptions) -> Result<Self, Error> {
        let Connection {
            vm,
            stream,
            attached,
            writer,
            newly_opened,
        } = from;
        let id = ProcessId(attached.id);
        let tty = TtyState::query(&vm, id).await?;
        let size = tty.map_or(options.size, |tty| tty.size);
        let records = match &options.record {
            Some(folder) => {
                let info = vm.processes().info(id).await?;
                Some(RecordThread::start(folder, &info, size).await?)
            }
            None => None,
        };
        let answer_from = match (newly_opened, options.view_only) {
            (_, true) => u64::MAX,
            (true, _) => 0,
            (false, _) => vm.processes().info(id).await?.stdout.end,
        };
        let model = Model::new(&options, size, attached.stdout);
        let shared = Arc::new(Shared::new(model, records));
        let input = stream.input();
        let reader = Reader {
            vm: vm.clone(),
            stream,
            shared: shared.clone(),
            id: attached.id,
            writer,
            offset: attached.stdout,
            answer_from,
        };
        let reader = tokio::spawn(reader.run());
        let core = Core {
            vm,
            shared,
            id,
            pid: attached.pid,
            input,
            quiet: options.quiet,
            timeout: options.timeout,
            reader: reader.abort_handle(),
        };
        Ok(Self {
            core: Arc::new(core),
        })
    }

    pub(super) fn from_core(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Returns the id that the agent assigned to it.
    pub fn id(&self) -> ProcessId {
        self.core.id
    }

    /// Returns the PID, in the guest, of the program that it was opened with.
    pub fn pid(&self) -> u32 {
        self.core.pid
    }

    /// Types a line and the Enter key, and waits until the program waits for input:
    /// see [`Exchange`].
    pub fn run(&self, line: impl AsRef<str>) -> Exchange<'_> {
        let line = line.as_ref();
        let bytes = [line.as_bytes(), b"\r"].concat();
        self.exchange(bytes, Interaction::run(line))
    }

    /// Types text unchanged.
    pub fn send_input(&self, text: impl AsRef<[u8]>) -> Exchange<'_> {
        let text = text.as_ref();
        self.exchange(text.to_vec(), Interaction::input(text))
    }

    /// Types a key together with Control: `c` interrupts, `d` ends the input,
    /// `z` stops, `l` redraws, `[` is Escape.
    pub fn send_control(&self, key: char) -> Exchange<'_> {
        self.send_key(KeyPress::control(key))
    }

    /// Types a key, encoded for the cursor key mode that the program has set.
    pub fn send_key(&self, key: impl Into<KeyPress>) -> Exchange<'_> {
        Exchange::new(self, Action::Key(key.into()))
    }

    /// Pastes text, with bracketed paste if the program has enabled it.
    pub fn paste(&self, text: impl Into<String>) -> Exchange<'_> {
        Exchange::new(self, Action::Paste(text.into()))
    }

    /// Types a password and the Enter key. It is not echoed, and where the
    /// program prints it, each of its bytes is replaced by `*`.
    ///
    /// Stored output never contains the whole password: neither the transcript
    /// and what is [read](Self::read) from it, nor the screen and its scrollback,
    /// nor recordings, nor [records](TerminalOptions::record) on disk. The
    /// password is also found if it is printed letter by letter, with any pauses,
    /// and with control sequences and line ends between its letters. When its
    /// last letter is printed, the earlier ones are masked too, on disk by
    /// overwriting them. The screen and the text of replies are also searched for
    /// letters that the program puts together by moving the cursor.
    ///
    /// Readers may see the first letters while the password is printed: the
    /// beginning of a match is held back for 100 ms only, and what was shown after
    /// that, in an earlier reply or by [`follow`](Self::follow), cannot be
    /// withdrawn. Encoded forms, for example Base64, are not recognised. Masking
    /// happens in this program, while there is a handle: the guest keeps the
    /// output unmasked, for other programs that attach and for later handles.
    ///
    /// Only the last 16 passwords are masked, and of each the first 4096 bytes. A
    /// password of less than 4 bytes is masked only until the next input, and
    /// only where its letters are adjacent.
    pub fn send_password(&self, password: impl AsRef<[u8]>) -> Exchange<'_> {
        Exchange::new(
            self,
            Action::Password(Zeroizing::new(password.as_ref().to_vec())),
        )
    }

    /// Sends a signal to the foreground process group.
    pub fn send_signal(&self, signal: Signal) -> Exchange<'_> {
        Exchange::new(self, Action::Signal(signal))
    }

    /// Returns a handle that types without waiting for output. Its input is not
    /// written to the [records](TerminalOptions::record).
    pub fn input(&self) -> TerminalInput {
        TerminalInput::new(self.clone())
    }

    /// Waits for new output. The reply is empty only if the timeout passed or the
    /// terminal has ended.
    pub fn poll_output(&self) -> Exchange<'_> {
        Exchange::new(self, Action::Poll)
    }

    /// Reads output from an offset on, as far as it is
    /// [kept](TerminalOptions::transcript_limit). To read on, pass
    /// [`Reply::end`](super::Reply::end).
    pub fn read(&self, cursor: u64) -> Exchange<'_> {
        Exchange::new(self, Action::Read(cursor))
    }

    /// Waits until a regular expression matches, first on the screen, then in new
    /// output. `^` and `$` match at line boundaries.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pattern is not a valid regular expression.
    pub fn expect(&self, pattern: &str) -> Result<Expect<'_>, Error> {
        Ok(Expect::pattern(self, compile_regex(pattern)?))
    }

    /// Waits for a shell's prompt.
    pub fn expect_prompt(&self) -> Expect<'_> {
        Expect::prompt(self)
    }

    /// Returns a snapshot of the screen.
    pub fn screen(&self) -> Screen {
        self.core.shared.model().masked_screen().screen()
    }

    /// Returns the last lines that scrolled off the screen, the newest last.
    pub fn scrollback(&self, lines: usize) -> Vec<String> {
        self.core.shared.model().masked_screen().scrollback(lines)
    }

    /// Clears the scrollback. The screen stays as it is, and nothing is sent to
    /// the program.
    pub fn clear_scrollback(&self) {
        self.core.shared.model().emulator.clear_scrollback();
    }

    /// Returns a stream of the output that is kept and of all new output. It
    /// drops nothing: while it is not read, the program in the guest blocks and
    /// the other views of this terminal get no new output. Read it in a task of
    /// its own.
    pub fn follow(&self) -> Follow {
        Follow::new(self.core.shared.follow())
    }

    /// Queries its state: program, working directory, size, status.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn info(&self) -> Result<TerminalInfo, Error> {
        TerminalInfo::query(self).await
    }

    /// Returns how its program ended, or `None` while it runs.
    pub fn exit(&self) -> Option<Exit> {
        match self.core.shared.model().ended {
            Some(EndReason::Exited(exit)) => Some(exit),
            _ => None,
        }
    }

    /// Waits until its program has ended.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&self) -> Result<Exit, Error> {
        let mut changes = self.core.shared.subscribe();
        loop {
            let ended = self.core.shared.model().ended;
            match ended {
                Some(EndReason::Exited(exit)) => return Ok(exit),
                Some(EndReason::LinkLost(lost)) => return Err(self.core.vm.explain(lost).await),
                // Cannot fail: the sender lives in `shared`.
                None => drop(changes.changed().await),
            }
        }
    }

    /// Changes its size. The kernel sends `SIGWINCH` to the program.
    ///
    /// # Errors
    /// [`Error::Exec`] if it has ended.
    ///
    /// # Cancel safety
    /// It may or may not be changed if the future is dropped.
    pub async fn resize(&self, size: TerminalSize) -> Result<(), Error> {
        let process = Selector::Id(self.core.id.0);
        let new_size = wire_size(size);
        self.request(&TerminalRequest::Resize {
            process,
            size: new_size,
        })
        .await?;
        self.core.shared.model().resized(size);
        self.core.shared.notify();
        if let Some(records) = &self.core.shared.records {
            records.resized(size).await;
        }
        Ok(())
    }

    /// Changes its tag.
    ///
    /// # Errors
    /// [`Error::Exec`] if the tag is in use or not valid.
    ///
    /// # Cancel safety
    /// It may or may not be changed if the future is dropped.
    pub async fn set_tag(&self, tag: &str) -> Result<(), Error> {
        let process = Selector::Id(self.core.id.0);
        self.request(&TerminalRequest::Rename { process, tag })
            .await
    }

    /// Sets the pattern of its prompt: see [`TerminalOptions::prompt`]. `None`
    /// leaves only the built-in detection.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pattern is not a valid regular expression.
    pub fn set_prompt(&self, pattern: Option<&str>) -> Result<(), Error> {
        let prompt = pattern.map(compile_regex).transpose()?;
        self.core.shared.model().prompt = prompt;
        Ok(())
    }

    /// Kills its program and the processes that it started, and waits until they
    /// have ended. Its output can still be read; later operations report
    /// [`Status::Terminated`](super::Status::Terminated).
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// The program is killed even if the future is dropped.
    pub async fn terminate(&self) -> Result<Exit, Error> {
        self.core.vm.processes().kill(self.core.id).await?;
        // The reader sees the end after all output that was in transit.
        self.wait().await
    }

    /// Removes a terminal whose program has ended from the guest, which frees its
    /// tag.
    ///
    /// # Errors
    /// [`Error::Exec`] if it still runs.
    ///
    /// # Cancel safety
    /// It may or may not be removed if the future is dropped.
    pub async fn forget(&self) -> Result<(), Error> {
        self.core.vm.processes().forget(self.core.id).await
    }

    /// Returns the folder of its [records](TerminalOptions::record), if any.
    pub fn records(&self) -> Option<PathBuf> {
        let records = self.core.shared.records.as_ref();
        records.map(|records| records.folder().to_owned())
    }

    /// Returns the output that is kept as a recording in the format asciicast v2,
    /// which asciinema plays.
    pub fn asciicast(&self) -> String {
        self.core.shared.model().asciicast()
    }

    pub(super) async fn send(&self, bytes: Bytes) -> bool {
        self.core.shared.model().note_input();
        self.core.input.write(bytes).await
    }

    pub(super) async fn send_secret(&self, bytes: &[u8]) -> Result<(), Error> {
        let typing = WriteInput {
            process: Selector::Id(self.core.id.0),
            bytes,
            kind: InputKind::Secret,
        };
        self.request(&TerminalRequest::WriteInput(typing)).await
    }

    pub(super) async fn signal(&self, signal: Signal) -> Result<(), Error> {
        let process = Selector::Id(self.core.id.0);
        let signal = signal.number();
        self.request(&TerminalRequest::Signal { process, signal })
            .await
    }

    pub(super) async fn log(&self, interaction: Interaction) {
        if let Some(records) = &self.core.shared.records {
            records.log(interaction).await;
        }
    }

    async fn request(&self, request: &TerminalRequest<'_>) -> Result<(), Error> {
        let vm = &self.core.vm;
        match vm.request(&Request::Terminal(*request)).await?.outcome() {
            Outcome::Done => Ok(()),
            other => Err(ExecFailure::refusal(
                &other,
                format!("terminal {}", self.core.id),
            )),
        }
    }

    fn exchange(&self, bytes: Vec<u8>, interaction: Interaction) -> Exchange<'_> {
        Exchange::new(self, Action::Type(bytes.into(), interaction))
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal")
            .field("id", &self.core.id)
            .field("pid", &self.core.pid)
            .finish_non_exhaustive()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
