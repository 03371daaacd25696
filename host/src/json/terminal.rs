use std::os::unix::ffi::OsStrExt as _;

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use vmcell_tree::{Date, json::write_name};

use super::exit::ExitRecord;
use crate::terminal::{Screen, ScreenCursor, TerminalInfo, TerminalSize};

impl Serialize for TerminalInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Record<'a> {
            id: crate::ProcessId,
            pid: u32,
            tag: &'a str,
            command: &'a [String],
            size: TerminalSize,
            foreground_pid: Option<u32>,
            foreground_command: Option<&'a str>,
            status: &'a str,
            prompt: &'a str,
            #[serde(flatten)]
            current_dir: CurrentDir<'a>,
            started: String,
            last_output: Option<String>,
            last_input: Option<String>,
            #[serde(flatten)]
            exit: ExitRecord<'a>,
        }
        let date = |time| Date::of(time).rfc3339();
        let record = Record {
            id: self.id,
            pid: self.pid,
            tag: &self.tag,
            command: &self.command,
            size: self.size,
            foreground_pid: self.foreground_pid,
            foreground_command: self.foreground_command.as_deref(),
            status: self.status.name(),
            prompt: self.prompt.name(),
            current_dir: CurrentDir(self),
            started: date(self.started),
            last_output: self.last_output.map(date),
            last_input: self.last_input.map(date),
            exit: self
                .exit
                .as_ref()
                .map_or_else(ExitRecord::default, ExitRecord::from),
        };
        record.serialize(serializer)
    }
}

/// The working directory of a terminal's foreground process: one key or two.
struct CurrentDir<'a>(&'a TerminalInfo);

impl Serialize for CurrentDir<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.0.current_dir {
            Some(path) => write_name(&mut map, "current_dir", path.as_os_str().as_bytes())?,
            None => map.serialize_entry("current_dir", &None::<&str>)?,
        }
        map.end()
    }
}

/// A [`Screen`] as JSON, without its styles.
#[derive(Serialize)]
struct ScreenRecord<'a> {
    size: TerminalSize,
    cursor: ScreenCursor,
    title: &'a str,
    alternate: bool,
    health: &'a str,
    text: String,
}

impl Serialize for Screen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = ScreenRecord {
            size: self.size,
            cursor: self.cursor,
            title: &self.title,
            alternate: self.alternate,
            health: self.health.name(),
            text: self.text(),
        };
        record.serialize(serializer)
    }
}
