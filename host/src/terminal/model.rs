use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bytes::{Bytes, BytesMut};
use regex::Regex;
use tokio::sync::mpsc;

use super::{
    TerminalOptions, TerminalSize,
    plain_text::PlainTextFilter,
    record::{CastInfo, write_asciicast},
    screen::Emulator,
    transcript::Transcript,
    typed_secrets::TypedSecrets,
};
use crate::{
    process::Exit,
    redaction::{MASK, Redacted, Redactor, ScanMode, SecretSet, Thoroughness},
    session::LinkError,
};

/// The state of a terminal in this program, from which all views are made.
pub(super) struct Model {
    pub(super) emulator: Emulator,
    pub(super) transcript: Transcript,
    pub(super) size: TerminalSize,
    pub(super) prompt: Option<Regex>,
    /// The end of the output that replies have returned.
    pub(super) reply_offset: u64,
    /// The state of the plain text at [`reply_offset`](Self::reply_offset).
    pub(super) plain_text: PlainTextFilter,
    typed: TypedSecrets,
    /// The secrets that programs of the VM have got.
    granted: Option<Arc<SecretSet>>,
    redactor: Redactor,
    /// How often output was masked after it was stored.
    pub(super) late_mask_count: u64,
    began: Instant,
    pub(super) last_output: Option<Instant>,
    pub(super) last_input: Option<Instant>,
    pub(super) ended: Option<EndReason>,
    /// Receive every byte of output.
    pub(super) subscribers: Vec<mpsc::Sender<Bytes>>,
}

/// Why there will be no more output.
#[derive(Clone, Copy, Debug)]
pub(super) enum EndReason {
    /// The program ended.
    Exited(Exit),
    /// The VM has ended, or the link to it is lost.
    LinkLost(LinkError),
}

impl Model {
    pub(super) fn new(options: &TerminalOptions, size: TerminalSize, offset: u64) -> Self {
        let mut emulator = Emulator::new(size, options.scrollback);
        if offset > 0 {
            // The guest has dropped the beginning.
            emulator.note_gap();
        }
        let mut transcript = Transcript::new(options.transcript, offset);
        transcript.resized(size, Duration::ZERO);
        let typed = TypedSecrets::default();
        Self {
            emulator,
            transcript,
            size,
            prompt: options.prompt.clone(),
            reply_offset: offset,
            plain_text: PlainTextFilter::new(),
            redactor: Redactor::new(typed.set(None), offset, Thoroughness::Thorough),
            typed,
            granted: None,
            late_mask_count: 0,
            began: Instant::now(),
            last_output: None,
            last_input: None,
            ended: None,
            subscribers: Vec::new(),
        }
    }

    /// Adds output. Returns what may be shown now, and the ranges of earlier
    /// output to mask; the model has masked them already.
    pub(super) fn add_output(&mut self, bytes: Bytes) -> Redacted {
        let output = self.redactor.feed(bytes);
        self.append(&output.bytes);
        let first = output.late_masks.iter().map(|range| range.start).min();
        if let Some(first) = first {
            for range in &output.late_masks {
                self.transcript.mask(range.clone(), MASK);
            }
            // A byte starts at most one line.
            let bytes = self.transcript.end().saturating_sub(first);
            self.mask_screen(ScanMode::Completed {
                lines: usize::try_from(bytes).unwrap_or(usize::MAX),
            });
            self.late_mask_count += 1;
        }
        output
    }

    /// Adds and returns the output that was held back.
    pub(super) fn release_held(&mut self) -> Redacted {
        let output = self.redactor.release();
        self.append(&output.bytes);
        output
    }

    /// Returns the screen and its scrollback, with secrets masked. The bytes were
    /// searched before, but a program can also move the cursor to put the letters
    /// of a secret together.
    pub(super) fn masked_screen(&mut self) -> &mut Emulator {
        self.mask_screen(ScanMode::Exact);
        &mut self.emulator
    }

    /// Masks secrets in plain text made of the output.
    pub(super) fn mask_secrets(&self, text: &mut String) {
        if let Some(scan) = self.redactor.scan(ScanMode::Exact) {
            scan.mask(text);
        }
    }

    /// Returns whether output is held back.
    pub(super) fn holds_back(&self) -> bool {
        self.redactor.holds_back()
    }

    /// Records that the guest has dropped bytes. Returns the output before them
    /// that was held back.
    pub(super) fn skip_lost(&mut self, bytes: u64) -> Redacted {
        let held = self.release_held();
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

    /// Returns all output that is kept, without its gaps.
    pub(super) fn kept_output(&self) -> Bytes {
        let mut all = BytesMut::new();
        let mut cursor = 0;
        while cursor < self.transcript.end() {
            let piece = self.transcript.read(cursor, usize::MAX);
            cursor = piece.end();
            all.extend_from_slice(&piece.bytes);
        }
        all.freeze()
    }

    /// Masks a secret in all output from now on, because it is about to be typed.
    pub(super) fn hide(&mut self, secret: &[u8]) {
        self.note_input();
        // Adding a secret may drop the oldest one.
        self.mask_screen(ScanMode::Exact);
        if self.typed.add(secret) {
            self.secrets_changed();
        }
    }

    /// Masks the secrets that programs of the VM have got, from now on.
    pub(super) fn hide_granted(&mut self, granted: Option<Arc<SecretSet>>) {
        let pointer = |set: &Option<Arc<SecretSet>>| set.as_ref().map(Arc::as_ptr);
        if pointer(&self.granted) != pointer(&granted) {
            self.granted = granted;
            self.secrets_changed();
        }
    }

    fn secrets_changed(&mut self) {
        let secrets = self.typed.set(self.granted.as_deref());
        self.redactor.replace_secrets(secrets);
    }

    /// Records that something is typed.
    pub(super) fn note_input(&mut self) {
        if self.typed.forget_short() {
            self.secrets_changed();
        }
        self.last_input = Some(Instant::now());
    }

    /// Returns the time since the last input, if nothing was printed since.
    pub(super) fn unanswered(&self) -> Option<Duration> {
        let typed = self.last_input?;
        (self.last_output < Some(typed)).then(|| typed.elapsed())
    }

    /// Returns for how long nothing was printed or typed.
    pub(super) fn silence(&self) -> Duration {
        let last = self.last_output.max(self.last_input);
        last.unwrap_or(self.began).elapsed()
    }

    pub(super) fn asciicast(&mut self) -> String {
        let screen = self.masked_screen().screen();
        let info = CastInfo {
            size: self.size,
            started: SystemTime::now()
                .checked_sub(self.began.elapsed())
                .unwrap_or(SystemTime::UNIX_EPOCH),
            title: Some(&screen.title[..]).filter(|title| !title.is_empty()),
            term: TerminalOptions::TERM,
        };
        let mut recording = Vec::new();
        // Writing to memory does not fail, and JSON is UTF-8.
        let _ = write_asciicast(&self.transcript, &info, &mut recording);
        String::from_utf8(recording).unwrap_or_default()
    }

    fn mask_screen(&mut self, mode: ScanMode) {
        if let Some(scan) = self.redactor.scan(mode) {
            self.emulator.redact(&scan);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
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

    /// A terminal that prints a password letter by letter, with `between` after
    /// each letter and pauses longer than output is held back.
    fn password_letter_by_letter(between: &str) -> Model {
        let size = TerminalSize::default();
        let mut model = Model::new(&TerminalOptions::new(), size, 1000);
        model.hide(PASSWORD.as_bytes());
        model.add_output(Bytes::from("it is "));
        for letter in PASSWORD.chars() {
            model.add_output(Bytes::from(format!("{letter}{between}")));
            model.release_held();
        }
        model.add_output(Bytes::from(" done\r\n"));
        model
    }

    #[test]
    fn a_password_that_comes_letter_by_letter_is_kept_nowhere() {
        for between in ["", "\r\n", "\x1b[0m", "\n", "\r\n\r\n"] {
            let mut model = password_letter_by_letter(between);
            let raw = String::from_utf8(model.kept_output().to_vec()).unwrap();
            assert_eq!(raw.matches('*').count(), PASSWORD.len(), "{raw:?}");
            let length = 6 + PASSWORD.len() * (1 + between.len()) + 7;
            assert_eq!(model.transcript.end(), 1000 + length as u64);
            let lines = model.masked_screen().scrollback(1000);
            let screen = model.masked_screen().screen().text();
            let recording = model.asciicast();
            let events = recording.split_once('\n').unwrap().1;
            let seen = lines.join("\n") + &screen;
            for text in [&raw, events, &seen] {
                let text = text.replace("it is", "").replace("done", "");
                let letters = text.replace("\\u001b", "");
                assert!(!letters.contains(['h', 'u']), "{between:?}: {text:?}");
            }
            assert!(screen.contains("done"));
            assert_eq!(model.late_mask_count, 1);
        }
    }

    #[test]
    fn a_password_that_is_forgotten_stays_masked() {
        let size = TerminalSize::default();
        let mut model = Model::new(&TerminalOptions::new(), size, 0);
        model.hide(PASSWORD.as_bytes());
        model.add_output(Bytes::from("\x1b[7G2\x1b[1Ghunter\r\n"));
        model.release_held();
        for number in 0..100 {
            model.hide(format!("other {number}").as_bytes());
        }
        assert_eq!(model.masked_screen().screen().text(), "*******");
    }
}
