use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    Prompt, Status, TerminalSize,
    model::EndReason,
    record::{Interaction, RecordError, Recorder, Session},
};
use crate::{
    error::Error,
    process::{Cause, ProcessInfo},
    redaction::{MASK, Redacted},
};

/// Records a session in a thread of its own, since disk writes block.
pub(super) struct RecordThread {
    folder: PathBuf,
    messages: mpsc::Sender<Message>,
    /// The error that stopped recording.
    failure: Arc<OnceLock<String>>,
}

enum Message {
    Output(Redacted),
    Log(Interaction),
    Resized(TerminalSize),
    End(EndReason, oneshot::Sender<()>),
}

/// How many messages may be queued before the terminal has to wait.
const QUEUE_LENGTH: usize = 64;

impl RecordThread {
    pub(super) async fn start(
        folder: &Path,
        process: &ProcessInfo,
        size: TerminalSize,
    ) -> Result<Self, Error> {
        let now = SystemTime::now();
        let session = Session {
            tag: process.tag.clone(),
            command: process.command.clone(),
            pid: process.pid,
            size,
            started: now.checked_sub(process.age).unwrap_or(now),
            ended: None,
            exit: None,
            status: Status::Unknown,
            prompt: Prompt::Unknown,
        };
        let host_error = Error::host("record a terminal session");
        let (messages, queue) = mpsc::channel(QUEUE_LENGTH);
        let failure = Arc::<OnceLock<String>>::default();
        let (report, started) = oneshot::channel();
        let (path, thread_failure) = (folder.to_owned(), failure.clone());
        let thread = std::thread::Builder::new().name("vmcell-records".to_owned());
        let work = move || match Recorder::create(&path, &session) {
            Ok(recorder) => {
                let _ = report.send(Ok(()));
                let mut writer = Writer { recorder, session };
                if let Err(error) = writer.run(queue) {
                    tracing::warn!(%error, "recording of a terminal session stopped");
                    // Cannot be set yet: the thread stops at its first error.
                    let _ = thread_failure.set(error.to_string());
                }
            }
            Err(error) => drop(report.send(Err(error))),
        };
        let started = match thread.spawn(work) {
            Ok(_) => started.await.map_err(io::Error::other),
            Err(error) => Err(error),
        };
        match started.and_then(|started| started.map_err(io::Error::other)) {
            Ok(()) => Ok(Self {
                folder: folder.to_owned(),
                messages,
                failure,
            }),
            Err(error) => Err(host_error(error)),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    pub(super) async fn append_output(&self, output: Redacted) {
        self.send(Message::Output(output)).await;
    }

    pub(super) async fn log(&self, interaction: Interaction) {
        self.send(Message::Log(interaction)).await;
    }

    pub(super) async fn resized(&self, size: TerminalSize) {
        self.send(Message::Resized(size)).await;
    }

    /// Records the end, and returns when everything is written.
    pub(super) async fn end(&self, ended: EndReason) {
        let (done, written) = oneshot::channel();
        self.send(Message::End(ended, done)).await;
        let _ = written.await;
    }

    /// Sends a message. It is dropped if recording has stopped.
    async fn send(&self, message: Message) {
        let _ = self.messages.send(message).await;
    }
}

struct Writer {
    recorder: Recorder,
    session: Session,
}

impl Writer {
    fn run(&mut self, mut messages: mpsc::Receiver<Message>) -> Result<(), RecordError> {
        loop {
            let message = match messages.try_recv() {
                Ok(message) => message,
                Err(_) => {
                    // Idle: a good time to flush.
                    self.recorder.flush()?;
                    match messages.blocking_recv() {
                        Some(message) => message,
                        None => return self.recorder.save(&self.session),
                    }
                }
            };
            match message {
                Message::Output(output) => {
                    for range in &output.late_masks {
                        let back = output.offset.saturating_sub(range.start);
                        let count = range.end.saturating_sub(range.start);
                        self.recorder.mask(back, count, MASK)?;
                    }
                    self.recorder.append_output(&output.bytes)?;
                }
                Message::Log(interaction) => self.recorder.log(&interaction)?,
                Message::Resized(size) => {
                    self.session.size = size;
                    self.recorder.log(&Interaction::resize(size))?;
                    self.recorder.save(&self.session)?;
                }
                Message::End(ended, done) => {
                    self.end(ended)?;
                    let _ = done.send(());
                }
            }
        }
    }

    fn end(&mut self, ended: EndReason) -> Result<(), RecordError> {
        self.recorder.flush()?;
        self.session.ended = Some(SystemTime::now());
        if let EndReason::Exited(exit) = ended {
            self.session.status = match exit.cause {
                Cause::Killed => Status::Terminated,
                _ => Status::Eof,
            };
            self.session.prompt = Prompt::None;
            self.session.exit = Some(exit);
            self.recorder.log(&Interaction::exit(exit))?;
        }
        self.recorder.save(&self.session)
    }
}
