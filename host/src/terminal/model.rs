use std::time::{Duration, Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use regex::Regex;
use tokio::sync::mpsc;

use super::{
    TerminalOptions, TerminalSize,
    plain::Plain,
    record::{Cast, asciicast},
    redaction::{MASK, Passed, Redactor, SweepKind},
    screen::Emulator,
    transcript::Transcript,
};
use crate::{process::Exit, session::LinkError};

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
    /// How often something was masked that was kept already.
    pub(super) late_masks: u64,
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
    Link(LinkError),
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
            redactor: Redactor::new(offset),
            late_masks: 0,
            began: Instant::now(),
            last_output: None,
            last_input: None,
            over: None,
            followers: Vec::new(),
        }
    }

    /// Takes what was printed. Returns what of it may be shown, and what has to
    /// be masked of what was shown before; here it is masked already.
    pub(super) fn printed(&mut self, bytes: Bytes) -> Passed {
        let passed = self.redactor.feed(bytes);
        self.show(&passed.bytes);
        let first = passed.late.iter().map(|range| range.start).min();
        if let Some(first) = first {
            for range in &passed.late {
                self.transcript.mask(range.clone(), MASK);
            }
            // No byte begins more than one line.
            let bytes = self.transcript.end().saturating_sub(first);
            self.sweep(SweepKind::Completed {
                lines: usize::try_from(bytes).unwrap_or(usize::MAX),
            });
            self.late_masks += 1;
        }
        passed
    }

    /// Nothing more came for a while: returns what was held back.
    pub(super) fn release(&mut self) -> Passed {
        let passed = self.redactor.release();
        self.show(&passed.bytes);
        passed
    }

    /// The screen, and what left it, without a secret on it: programs can also
    /// move the cursor until the letters of one stand together.
    pub(super) fn safe_emulator(&mut self) -> &mut Emulator {
        self.sweep(SweepKind::Exact);
        &mut self.emulator
    }

    /// Masks secrets in text that was printed, once its lines are put together.
    pub(super) fn mask_text(&self, text: &mut String) {
        if let Some(sweep) = self.redactor.sweep(SweepKind::Exact) {
            sweep.mask(text);
        }
    }

    /// Whether something is held back.
    pub(super) fn holds_back(&self) -> bool {
        self.redactor.holds_back()
    }

    /// The guest has dropped bytes. Answers what was held back before them.
    pub(super) fn lost(&mut self, bytes: u64) -> Passed {
        let held = self.release();
        self.redactor.skip(bytes);
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
        // The oldest may be forgotten.
        self.sweep(SweepKind::Exact);
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

    pub(super) fn asciicast(&mut self) -> String {
        let screen = self.safe_emulator().screen();
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

    fn sweep(&mut self, kind: SweepKind) {
        if let Some(sweep) = self.redactor.sweep(kind) {
            self.emulator.redact(&sweep);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD: &str = "hunter2";

    /// A terminal on which a password comes letter by letter, with something
    /// behind each, and with pauses that are too long for holding back.
    fn slowly(between: &str) -> Model {
        let size = TerminalSize::default();
        let mut model = Model::new(&TerminalOptions::new(), size, 1000);
        model.hide(PASSWORD.as_bytes());
        model.printed(Bytes::from("it is "));
        for letter in PASSWORD.chars() {
            model.printed(Bytes::from(format!("{letter}{between}")));
            model.release();
        }
        model.printed(Bytes::from(" done\r\n"));
        model
    }

    #[test]
    fn a_password_that_comes_letter_by_letter_is_kept_nowhere() {
        for between in ["", "\r\n", "\x1b[0m", "\n", "\r\n\r\n"] {
            let mut model = slowly(between);
            let raw = String::from_utf8(model.kept().to_vec()).unwrap();
            assert_eq!(raw.matches('*').count(), PASSWORD.len(), "{raw:?}");
            let length = 6 + PASSWORD.len() * (1 + between.len()) + 7;
            assert_eq!(model.transcript.end(), 1000 + length as u64);
            let lines = model.safe_emulator().scrollback(1000);
            let screen = model.safe_emulator().screen().text();
            let recording = model.asciicast();
            let events = recording.split_once('\n').unwrap().1;
            let seen = lines.join("\n") + &screen;
            for text in [&raw, events, &seen] {
                let text = text.replace("it is", "").replace("done", "");
                let letters = text.replace("\\u001b", "");
                assert!(!letters.contains(['h', 'u']), "{between:?}: {text:?}");
            }
            assert!(screen.contains("done"));
            assert_eq!(model.late_masks, 1);
        }
    }

    #[test]
    fn a_password_that_is_forgotten_stays_masked() {
        let size = TerminalSize::default();
        let mut model = Model::new(&TerminalOptions::new(), size, 0);
        model.hide(PASSWORD.as_bytes());
        model.printed(Bytes::from("\x1b[7G2\x1b[1Ghunter\r\n"));
        model.release();
        for number in 0..100 {
            model.hide(format!("other {number}").as_bytes());
        }
        assert_eq!(model.safe_emulator().screen().text(), "*******");
    }
}
