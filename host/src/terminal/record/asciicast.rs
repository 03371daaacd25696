use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::{Duration, SystemTime},
};

use serde::Serialize;

use super::{
    super::{
        TerminalSize,
        transcript::{Event, Transcript},
    },
    session::unix_milliseconds,
};

/// The metadata of a recording.
#[derive(Clone, Debug)]
pub(crate) struct CastInfo<'a> {
    /// The size of the terminal, if the transcript has none.
    pub(crate) size: TerminalSize,
    /// When the session started.
    pub(crate) started: SystemTime,
    pub(crate) title: Option<&'a str>,
    /// The value of `TERM`.
    pub(crate) term: &'a str,
}

/// The header of the format: <https://docs.asciinema.org/manual/asciicast/v2/>.
#[derive(Serialize)]
struct Header<'a> {
    version: u8,
    width: u16,
    height: u16,
    timestamp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    env: BTreeMap<&'static str, &'a str>,
}

/// Writes the transcript as a recording in the format asciicast v2. The recording
/// starts at the time of the oldest output that is kept.
pub(crate) fn write_asciicast(
    transcript: &Transcript,
    info: &CastInfo<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut events = transcript.events().peekable();
    let mut size = info.size;
    // A size before any output is the initial one.
    while let Some((_, Event::Resize(first))) =
        events.next_if(|(_, event)| matches!(event, Event::Resize(_)))
    {
        size = first;
    }
    let begin = events.peek().map_or(Duration::ZERO, |(at, _)| *at);
    let started = info.started.checked_add(begin).unwrap_or(info.started);
    write_line(
        out,
        &Header {
            version: 2,
            width: size.columns,
            height: size.rows,
            timestamp: unix_milliseconds(started) / 1000,
            title: info.title,
            env: BTreeMap::from([("TERM", info.term)]),
        },
    )?;
    let mut decoder = Utf8Decoder::default();
    let mut last = 0.0;
    for (at, event) in events {
        let seconds = at.saturating_sub(begin).as_secs_f64();
        // Lost bytes end an incomplete character; a resize does not.
        if matches!(event, Event::Lost(_)) {
            write_output(out, last, decoder.finish())?;
        }
        match event {
            Event::Output(bytes) => write_output(out, seconds, &decoder.decode(bytes))?,
            Event::Resize(TerminalSize { columns, rows }) => {
                write_line(out, &(seconds, "r", format!("{columns}x{rows}")))?;
            }
            Event::Lost(lost) => {
                write_line(out, &(seconds, "m", format!("{lost} bytes are missing")))?
            }
        }
        last = seconds;
    }
    write_output(out, last, decoder.finish())
}

fn write_output(out: &mut impl Write, seconds: f64, text: &str) -> io::Result<()> {
    match text.is_empty() {
        true => Ok(()),
        false => write_line(out, &(seconds, "o", text)),
    }
}

fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Decodes UTF-8, joining characters that are split between two pieces.
#[derive(Default)]
struct Utf8Decoder {
    partial: Vec<u8>,
}

impl Utf8Decoder {
    fn decode(&mut self, bytes: &[u8]) -> String {
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = &joined[..];
        while let Err(error) = str::from_utf8(rest) {
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            text.push_str(str::from_utf8(valid).unwrap_or_default());
            let Some(length) = error.error_len() else {
                self.partial = invalid.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &invalid[length..];
        }
        text.push_str(str::from_utf8(rest).unwrap_or_default());
        text
    }

    /// Ends the input. Returns U+FFFD for an incomplete character.
    fn finish(&mut self) -> &'static str {
        match std::mem::take(&mut self.partial).is_empty() {
            true => "",
            false => "\u{fffd}",
        }
    }
}
