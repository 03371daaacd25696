use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    Prompt, Status, TerminalSize,
    model::Over,
    record::{Interaction, RecordError, Recorder, Session},
    redaction::{MASK, Passed},
};
use crate::{
    error::Error,
    process::{Cause, ProcessInfo},
};

/// Writes a session down, in a thread of its own: disks block.
pub(super) struct Records {
    folder: PathBuf,
    orders: mpsc::Sender<Order>,
    /// Why nothing more is written.
    failure: Arc<OnceLock<String>>,
}

enum Order {
    Printed(Passed),
    Log(Interaction),
    Resized(TerminalSize),
    Ended(Over, oneshot::Sender<()>),
}

/// So many orders may wait before the terminal does.
const WAITING: usize = 64;

impl Records {
    pub(super) async fn begin(
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
        let failed = Error::host("write down what happens on a terminal");
        let (orders, waiting) = mpsc::channel(WAITING);
        let failure = Arc::<OnceLock<String>>::default();
        let (began, begun) = oneshot::channel();
        let (path, told) = (folder.to_owned(), failure.clone());
        let thread = std::thread::Builder::new().name("vmcell-records".to_owned());
        let work = move || match Recorder::create(&path, &session) {
            Ok(recorder) => {
                let _ = began.send(Ok(()));
                let mut writer = Writer { recorder, session };
                if let Err(error) = writer.write_all(waiting) {
                    tracing::warn!(%error, "a terminal's records are not complete");
                    // It is the first.
                    let _ = told.set(error.to_string());
                }
            }
            Err(error) => drop(began.send(Err(error))),
        };
        let begun = match thread.spawn(work) {
            Ok(_) => begun.await.map_err(io::Error::other),
            Err(error) => Err(error),
        };
        match begun.and_then(|begun| begun.map_err(io::Error::other)) {
            Ok(()) => Ok(Self {
                folder: folder.to_owned(),
                orders,
                failure,
            }),
            Err(error) => Err(failed(error)),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    pub(super) async fn printed(&self, passed: Passed) {
        self.order(Order::Printed(passed)).await;
    }

    pub(super) async fn log(&self, interaction: Interaction) {
        self.order(Order::Log(interaction)).await;
    }

    pub(super) async fn resized(&self, size: TerminalSize) {
        self.order(Order::Resized(size)).await;
    }

    /// Returns when everything is written.
    pub(super) async fn ended(&self, over: Over) {
        let (done, written) = oneshot::channel();
        self.order(Order::Ended(over, done)).await;
        let _ = written.await;
    }

    /// Who does not write any more takes no orders.
    async fn order(&self, order: Order) {
        let _ = self.orders.send(order).await;
    }
}

struct Writer {
    recorder: Recorder,
    session: Session,
}

impl Writer {
    fn write_all(&mut self, mut orders: mpsc::Receiver<Order>) -> Result<(), RecordError> {
        loop {
            let order = match orders.try_recv() {
                Ok(order) => order,
                Err(_) => {
                    // There is time.
                    self.recorder.flush()?;
                    match orders.blocking_recv() {
                        Some(order) => order,
                        None => return self.recorder.save(&self.session),
                    }
                }
            };
            match order {
                Order::Printed(passed) => {
                    for range in &passed.late {
                        let back = passed.offset.saturating_sub(range.start);
                        let count = range.end.saturating_sub(range.start);
                        self.recorder.mask(back, count, MASK)?;
                    }
                    self.recorder.printed(&passed.bytes)?;
                }
                Order::Log(interaction) => self.recorder.log(&interaction)?,
                Order::Resized(size) => {
                    self.session.size = size;
                    self.recorder.log(&Interaction::resize(size))?;
                    self.recorder.save(&self.session)?;
                }
                Order::Ended(over, done) => {
                    self.end(over)?;
                    let _ = done.send(());
                }
            }
        }
    }

    fn end(&mut self, over: Over) -> Result<(), RecordError> {
        self.recorder.flush()?;
        self.session.ended = Some(SystemTime::now());
        if let Over::Ended(exit) = over {
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
