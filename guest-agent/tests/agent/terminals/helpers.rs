//! Helpers to open and use terminals.

use vmcell_wire::{
    Channel, Position, Request, Selector, StreamId,
    terminal::{
        AttachTerminal, InputKind, OpenTerminal, Size, TerminalRequest, UnreadOutput, WriteInput,
    },
};

use crate::client::{Host, Reply, Spec, TerminalSnapshot};

pub(super) const SIZE: Size = Size {
    columns: 80,
    rows: 24,
};

impl Spec {
    /// An interactive shell with the prompt `$ `.
    pub(super) fn bash() -> Self {
        Self::new(&["bash", "--noprofile", "--norc"]).with(|spec| {
            spec.env.push(b"PS1=$ ".to_vec());
            spec.env.push(b"TERM=dumb".to_vec());
            spec.env.push(b"HISTFILE=".to_vec());
        })
    }

    /// A shell script with the terminal's echo turned off.
    pub(super) fn without_echo(script: &str) -> Self {
        Self::shell(&format!("stty -echo; echo ready; {script}"))
    }
}

/// Opens a terminal and returns its id and pid.
pub(super) fn open(host: &mut Host, spec: &Spec, unread: UnreadOutput) -> (u32, u32) {
    open_sized(host, spec, unread, SIZE)
}

pub(super) fn open_sized(
    host: &mut Host,
    spec: &Spec,
    unread: UnreadOutput,
    size: Size,
) -> (u32, u32) {
    match try_open(host, spec, unread, size) {
        Reply::Spawned(_, id, pid) => (id, pid),
        other => panic!("no terminal: {other:?}"),
    }
}

pub(super) fn try_open(host: &mut Host, spec: &Spec, unread: UnreadOutput, size: Size) -> Reply {
    let stream = host.open_with(spec, |start| {
        Request::Terminal(TerminalRequest::Open(OpenTerminal {
            start,
            size,
            unread,
        }))
    });
    host.outcome(stream)
}

/// Attaches to a terminal as a reader and writer.
pub(super) fn attach_writer(host: &mut Host, id: u32, offset: u64, writer: u64) -> StreamId {
    let window = host.window;
    let stream = host.open(&Request::Terminal(TerminalRequest::Attach(
        AttachTerminal {
            process: Selector::Id(id),
            output: Position { offset, window },
            writer,
        },
    )));
    host.attached(stream);
    stream
}

/// Opens a terminal and attaches to it.
pub(super) fn open_attached(host: &mut Host, spec: &Spec) -> (u32, StreamId) {
    let (id, _) = open(host, spec, UnreadOutput::Block);
    (id, attach_writer(host, id, 0, 1))
}

/// Returns the output so far, without carriage returns.
pub(super) fn printed(host: &Host, stream: StreamId) -> String {
    String::from_utf8_lossy(host.output(stream, Channel::Stdout)).replace('\r', "")
}

/// Waits until a text was printed `times` times.
pub(super) fn until_printed(host: &mut Host, stream: StreamId, text: &str, times: usize) {
    while printed(host, stream).matches(text).count() < times {
        host.until(|reply| {
            assert!(!reply.closes(stream), "{reply:?} before {text:?}");
            matches!(reply, Reply::Data(id, ..) if *id == stream)
        });
    }
}

/// Types a line, and waits until the shell has printed `prompts` prompts in
/// total.
pub(super) fn command(host: &mut Host, stream: StreamId, line: &str, prompts: usize) {
    host.write_stdin(stream, format!("{line}\n").as_bytes());
    until_printed(host, stream, "$ ", prompts);
}

pub(super) fn look(host: &mut Host, id: u32) -> TerminalSnapshot {
    let process = Selector::Id(id);
    match host.ask(&Request::Terminal(TerminalRequest::GetState { process })) {
        Reply::Terminal(_, looked) => looked,
        other => panic!("not seen: {other:?}"),
    }
}

/// Waits until a process with this name is in the foreground.
pub(super) fn until_foreground(host: &mut Host, id: u32, name: &str) -> TerminalSnapshot {
    loop {
        let looked = look(host, id);
        if looked
            .foreground
            .as_ref()
            .is_some_and(|(_, it, _)| it == name)
        {
            return looked;
        }
    }
}

pub(super) fn resize(host: &mut Host, id: u32, columns: u16, rows: u16) -> Reply {
    host.ask(&Request::Terminal(TerminalRequest::Resize {
        process: Selector::Id(id),
        size: Size { columns, rows },
    }))
}

pub(super) fn signal(host: &mut Host, id: u32, signal: i32) -> Reply {
    host.ask(&Request::Terminal(TerminalRequest::Signal {
        process: Selector::Id(id),
        signal: u8::try_from(signal).unwrap(),
    }))
}

pub(super) fn type_as(host: &mut Host, id: u32, bytes: &[u8], kind: InputKind) -> Reply {
    host.ask(&Request::Terminal(TerminalRequest::WriteInput(
        WriteInput {
            process: Selector::Id(id),
            bytes,
            kind,
        },
    )))
}

/// Waits until a process is stopped.
pub(super) fn until_stopped(pid: u32) {
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    while !state().contains(") T ") {
        std::thread::yield_now();
    }
}
