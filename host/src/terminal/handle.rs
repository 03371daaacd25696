use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::task::AbortHandle;
use vmcell_wire::{
    Attached, Request, Selector,
    terminal::{Terminal as Wire, Typed, Typing},
};
use zeroize::Zeroizing;

use super::{
    Exchange, Expect, Follow, KeyPress, Screen, TerminalInfo, TerminalInput, TerminalOptions,
    TerminalSize,
    exchange::Action,
    look::Look,
    model::{Model, Over},
    options::expression,
    reader::Reader,
    record::Interaction,
    records::Records,
    shared::Shared,
    terminals::wire_size,
};
use crate::{
    error::Error,
    process::{ExecFailure, Exit, ProcessId},
    session::{Closing, Stream, StreamEvent, StreamInput},
    vm::Vm,
};

/// A terminal in a VM, followed by this program: what it prints is read all the
/// time, into a transcript and onto a screen, so that looking at either never
/// takes anything from anybody.
///
/// Handles are cheap to clone and all mean the same terminal. When the last one
/// is dropped, the terminal goes on in the guest and can be
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
    pub(super) quiet: Duration,
    pub(super) timeout: Duration,
    reader: AbortHandle,
}

/// What a handle begins with.
pub(super) struct Seed {
    pub(super) vm: Vm,
    pub(super) stream: Stream,
    pub(super) attached: Attached,
    pub(super) writer: u64,
    /// Whether we have just opened it.
    pub(super) opened: bool,
}

impl Terminal {
    pub(super) async fn begin(seed: Seed, options: TerminalOptions) -> Result<Self, Error> {
        let Seed {
            vm,
            stream,
            attached,
            writer,
            opened,
        } = seed;
        let id = ProcessId(attached.id);
        let look = Look::at(&vm, id).await?;
        let size = look.map_or(options.size, |look| look.size);
        let records = match &options.record {
            Some(folder) => {
                let info = vm.processes().info(id).await?;
                Some(Records::begin(folder, &info, size).await?)
            }
            None => None,
        };
        let answers_from = match (opened, options.view_only) {
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
            answers_from,
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

    pub(super) fn of(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The number that the agent gave it.
    pub fn id(&self) -> ProcessId {
        self.core.id
    }

    /// The kernel's number of the program that it was opened with.
    pub fn pid(&self) -> u32 {
        self.core.pid
    }

    /// Types a line and the Enter key, and waits for what comes of it.
    pub fn run(&self, line: impl AsRef<str>) -> Exchange<'_> {
        let line = line.as_ref();
        let bytes = [line.as_bytes(), b"\r"].concat();
        self.exchange(bytes, Interaction::run(line))
    }

    /// Types text as it is.
    pub fn send_input(&self, text: impl AsRef<[u8]>) -> Exchange<'_> {
        let text = text.as_ref();
        self.exchange(text.to_vec(), Interaction::input(text))
    }

    /// Types a key together with the control key: `c` interrupts, `d` ends the
    /// input, `z` stops, `l` redraws, `[` is Escape.
    pub fn send_control(&self, key: char) -> Exchange<'_> {
        self.send_key(KeyPress::control(key))
    }

    /// Types a key, as the program has asked for keys to be told.
    pub fn send_key(&self, key: impl Into<KeyPress>) -> Exchange<'_> {
        Exchange::new(self, Action::Key(key.into()))
    }

    /// Pastes text: a program that asked for it is told that it is pasted and
    /// not typed.
    pub fn paste(&self, text: impl Into<String>) -> Exchange<'_> {
        Exchange::new(self, Action::Paste(text.into()))
    }

    /// Types a password and the Enter key. It is not echoed, and where the
    /// program prints it, each of its bytes is shown as `*`.
    ///
    /// What is kept never holds it whole: the transcript and what is
    /// [read](Self::read) from it, the screen and the lines that left it,
    /// recordings, [records](TerminalOptions::record) on disk. It may come letter
    /// by letter and with any pauses, and control sequences and ends of lines may
    /// stand between its letters. As soon as its last letter comes, those before
    /// it are masked too, on disk by overwriting them. On the screen and in the
    /// text of replies that is also so if the program moves the cursor to put
    /// the letters together.
    ///
    /// Whoever looks while it comes may see its first letters: the beginning of
    /// a match is held back for 100 ms, and what was shown after that, in an
    /// earlier reply or to who [follows](Self::follow), cannot be taken back. Nor
    /// is it recognised if the program prints something else that means the
    /// same, for example its Base64. All this is done here, as long as there is a
    /// handle: the guest keeps what its program printed as it is, for other
    /// programs that attach and for later handles.
    ///
    /// Only the last 16 passwords are remembered, and of each the first 4096
    /// bytes. One of less than 4 bytes is only masked until something else is
    /// typed, and only where nothing stands between its letters.
    pub fn send_password(&self, password: impl AsRef<[u8]>) -> Exchange<'_> {
        Exchange::new(
            self,
            Action::Password(Zeroizing::new(password.as_ref().to_vec())),
        )
    }

    /// Sends a signal to whoever is in the foreground.
    pub fn send_signal(&self, signal: u8) -> Exchange<'_> {
        Exchange::new(self, Action::Signal(signal))
    }

    /// Its keyboard, for who does not wait for what comes of each key. What is
    /// typed there is not in the [records](TerminalOptions::record).
    pub fn input(&self) -> TerminalInput {
        TerminalInput::new(self.clone())
    }

    /// Waits for something new to be printed. The reply is empty only if
    /// nothing was within the timeout.
    pub fn poll_output(&self) -> Exchange<'_> {
        Exchange::new(self, Action::Poll)
    }

    /// Reads what was printed from an offset on, as far as it is
    /// [kept](TerminalOptions::transcript_limit). Replies tell how far they
    /// reach: [`Reply::end`](super::Reply::end).
    pub fn read(&self, cursor: u64) -> Exchange<'_> {
        Exchange::new(self, Action::Read(cursor))
    }

    /// Waits until a regular expression matches: at first what is on the screen,
    /// then what comes. `^` and `$` match at lines.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is no regular expression.
    pub fn expect(&self, pattern: &str) -> Result<Expect<'_>, Error> {
        Ok(Expect::pattern(self, expression(pattern)?))
    }

    /// Waits until a shell's prompt is there.
    pub fn expect_prompt(&self) -> Expect<'_> {
        Expect::prompt(self)
    }

    /// What the screen looks like now.
    pub fn screen(&self) -> Screen {
        self.core.shared.model().safe_emulator().screen()
    }

    /// The last lines that left the screen at its top, the newest last.
    pub fn scrollback(&self, lines: usize) -> Vec<String> {
        self.core.shared.model().safe_emulator().scrollback(lines)
    }

    /// Forgets the lines that left the screen. The screen stays as it is, and
    /// nothing is sent.
    pub fn clear_scrollback(&self) {
        self.core.shared.model().emulator.clear_scrollback();
    }

    /// Everything that is kept of what it printed, and all that it prints from
    /// now on. The program in the guest waits for who follows, so nothing is
    /// left out; nor is anything new seen here while that one does not read, so
    /// let it have a task of its own.
    pub fn follow(&self) -> Follow {
        Follow::new(self.core.shared.follow())
    }

    /// What it is doing, who it is and where.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn info(&self) -> Result<TerminalInfo, Error> {
        TerminalInfo::ask(self).await
    }

    /// How it ended, if it did.
    pub fn exit(&self) -> Option<Exit> {
        match self.core.shared.model().over {
            Some(Over::Ended(exit)) => Some(exit),
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
        let mut news = self.core.shared.news();
        loop {
            let over = self.core.shared.model().over;
            match over {
                Some(Over::Ended(exit)) => return Ok(exit),
                Some(Over::Link(lost)) => return Err(self.core.vm.explain(lost).await),
                // The sender is ours.
                None => drop(news.changed().await),
            }
        }
    }

    /// Changes its size. The program is told by the kernel.
    ///
    /// # Errors
    /// [`Error::Exec`] if it has ended.
    ///
    /// # Cancel safety
    /// It may or may not be changed if the future is dropped.
    pub async fn resize(&self, size: TerminalSize) -> Result<(), Error> {
        let process = Selector::Id(self.core.id.0);
        let size_there = wire_size(size);
        self.ask(&Wire::Resize {
            process,
            size: size_there,
        })
        .await?;
        self.core.shared.model().resized(size);
        self.core.shared.changed();
        if let Some(records) = &self.core.shared.records {
            records.resized(size).await;
        }
        Ok(())
    }

    /// Gives it another tag.
    ///
    /// # Errors
    /// [`Error::Exec`] if the tag is taken or cannot be one.
    ///
    /// # Cancel safety
    /// It may or may not be changed if the future is dropped.
    pub async fn set_tag(&self, tag: &str) -> Result<(), Error> {
        let process = Selector::Id(self.core.id.0);
        self.ask(&Wire::Rename { process, tag }).await
    }

    /// How its prompt is recognised: see [`TerminalOptions::prompt`]. None:
    /// as the library does.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is no regular expression.
    pub fn set_prompt(&self, pattern: Option<&str>) -> Result<(), Error> {
        let prompt = pattern.map(expression).transpose()?;
        self.core.shared.model().prompt = prompt;
        Ok(())
    }

    /// Ends its program and all that it has started, and waits until they are
    /// gone. What it has printed can still be read; what is asked of it later
    /// is answered with [`Status::Terminated`](super::Status::Terminated).
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// It is ended even if the future is dropped.
    pub async fn terminate(&self) -> Result<Exit, Error> {
        self.core.vm.processes().kill(self.core.id).await?;
        // What was on its way has come when the reader has seen the end.
        self.wait().await
    }

    /// Makes the guest forget a terminal whose program has ended, so that its
    /// tag is free again.
    ///
    /// # Errors
    /// [`Error::Exec`] if it still runs.
    ///
    /// # Cancel safety
    /// It may or may not be forgotten if the future is dropped.
    pub async fn forget(&self) -> Result<(), Error> {
        self.core.vm.processes().forget(self.core.id).await
    }

    /// The folder of its [records](TerminalOptions::record).
    pub fn records(&self) -> Option<PathBuf> {
        let records = self.core.shared.records.as_ref();
        records.map(|records| records.folder().to_owned())
    }

    /// What is kept of what it printed as a recording in the format asciicast
    /// v2, which asciinema and others play.
    pub fn asciicast(&self) -> String {
        self.core.shared.model().asciicast()
    }

    pub(super) async fn send(&self, bytes: Bytes) -> bool {
        self.core.shared.model().typed();
        self.core.input.write(bytes).await
    }

    pub(super) async fn send_secret(&self, bytes: &[u8]) -> Result<(), Error> {
        let typing = Typing {
            process: Selector::Id(self.core.id.0),
            bytes,
            kind: Typed::Secret,
        };
        self.ask(&Wire::Type(typing)).await
    }

    pub(super) async fn signal(&self, signal: u8) -> Result<(), Error> {
        let process = Selector::Id(self.core.id.0);
        self.ask(&Wire::Signal { process, signal }).await
    }

    pub(super) async fn log(&self, interaction: Interaction) {
        if let Some(records) = &self.core.shared.records {
            records.log(interaction).await;
        }
    }

    async fn ask(&self, request: &Wire<'_>) -> Result<(), Error> {
        let vm = &self.core.vm;
        let mut stream = vm.open(&Request::Terminal(*request))?;
        match vm.explained(stream.next().await).await? {
            StreamEvent::Closed(Closing::Done) => Ok(()),
            StreamEvent::Closed(Closing::Failed(failed)) => {
                let subject = format!("terminal {}", self.core.id);
                Err(ExecFailure::from_guest(failed, subject).into())
            }
            _ => Err(Error::unexpected_reply()),
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
