use std::time::{Duration, Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use regex::Regex;
use tokio::sync::mpsc;

use super::{
    TerminalOptions, TerminalSize,
    plain::Plain,
    record::{Cast, asciicast},
    redaction::Redactor,
    screen::Emulator,
    transcript::Transcript,
};
use crate::{process::Exit, session::Lost};

/// What this program knows of a terminal: everything that views are made of.
pub(super) struct Model {
    pub(super) emulator: Emulator,
    pub(super) transcript: Transcript,
    pub(super) size: TerminalSize,
    pub(super) prompt: Option<Regex>,
    /// Up to where replies have told what was printed.
    pub(super) told: u64,
    /// Where [`told`](Self::told) stands within escape sequences and lines.
    pub(super) plain: Plain,
    redactor: Redactor,
    began: Instant,
    pub(super) last_output: Option<Instant>,
    pub(super) last_input: Option<Instant>,
    pub(super) over: Option<Over>,
    /// Those who want every byte.
    pub(super) followers: Vec<mpsc::Sender<Bytes>>,
}

/// Why nothing more will come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Over {
    /// The program ended.
    Ended(Exit),
    /// The VM is gone, or the link to it.
    Lost(Lost),
}

impl Model {
    pub(super) fn new(options: &TerminalOptions, size: TerminalSize, offset: u64) -> Self {
        let mut emulator = Emulator::new(size, options.scrollback);
        if offset > 0 {
            // The beginning is not kept any more.
            emulator.note_gap();
        }
        let mut transcript = Transcript::new(options.transcript, offset);
        transcript.resized(size, Duration::ZERO);
        Self {
            emulator,
            transcript,
            size,
            prompt: options.prompt.clone(),
            told: offset,
            plain: Plain::new(),
            redactor: Redactor::new(),
            began: Instant::now(),
            last_output: None,
            last_input: None,
            over: None,
            followers: Vec::new(),
        }
    }

    /// Takes what was printed. Answers what of it may be shown.
    pub(super) fn printed(&mut self, bytes: Bytes) -> Bytes {
        let shown = self.redactor.feed(bytes);
        self.show(&shown);
        shown
    }

    /// Nothing more came for a while: what was held back is no secret.
    pub(super) fn release(&mut self) -> Bytes {
        let shown = self.redactor.flush();
        self.show(&shown);
        shown
    }

    /// Whether something is held back.
    pub(super) fn holds_back(&self) -> bool {
        self.redactor.holds_back()
    }

    /// The guest has dropped bytes. Answers what was held back before them.
    pub(super) fn lost(&mut self, bytes: u64) -> Bytes {
        let held = self.release();
        self.transcript.gap(bytes);
        self.emulator.note_gap();
        held
    }

    pub(super) fn resized(&mut self, size: TerminalSize) {
        self.size = size;
        self.emulator.resize(size);
        self.transcript.resized(size, self.began.elapsed());
    }

    /// Everything that is kept of what was printed, whatever is missing in it.
    pub(super) fn kept(&self) -> Bytes {
        let mut all = BytesMut::new();
        let mut cursor = 0;
        while cursor < self.transcript.end() {
            let piece = self.transcript.read(cursor, usize::MAX);
            cursor = piece.end();
            all.extend_from_slice(&piece.bytes);
        }
        all.freeze()
    }

    /// A secret is typed: hides it in all that is printed from now on.
    pub(super) fn hide(&mut self, secret: &[u8]) {
        self.typed();
        self.redactor.hide(secret);
    }

    /// Something was typed.
    pub(super) fn typed(&mut self) {
        self.redactor.next_input();
        self.last_input = Some(Instant::now());
    }

    /// How long ago something was typed, if nothing was printed since.
    pub(super) fn unanswered(&self) -> Option<Duration> {
        let typed = self.last_input?;
        (self.last_output < Some(typed)).then(|| typed.elapsed())
    }

    /// For how long nothing was printed or typed.
    pub(super) fn silence(&self) -> Duration {
        let last = self.last_output.max(self.last_input);
        last.unwrap_or(self.began).elapsed()
    }

    pub(super) fn asciicast(&self) -> String {
        let screen = self.emulator.screen();
        let cast = Cast {
            size: self.size,
            started: SystemTime::now()
                .checked_sub(self.began.elapsed())
                .unwrap_or(SystemTime::UNIX_EPOCH),
            title: Some(&screen.title[..]).filter(|title| !title.is_empty()),
            term: TerminalOptions::TERM,
        };
        let mut recording = Vec::new();
        // Memory takes everything, and JSON is text.
        let _ = asciicast(&self.transcript, &cast, &mut recording);
        String::from_utf8(recording).unwrap_or_default()
    }

    fn show(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.last_output = Some(Instant::now());
        self.transcript.push(bytes, self.began.elapsed());
        self.emulator.feed(bytes);
    }
}
