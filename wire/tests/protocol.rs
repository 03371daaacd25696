//! `PROTOCOL.md` against the code: its tables of messages, numbers and limits, and
//! its worked examples.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, fmt::Write as _};

use serde_reflection::{
    ContainerFormat, Format, Named, Registry, Samples, Tracer, TracerConfig, VariantFormat,
};
use vmcell_wire::{
    Attach, Capabilities, Channel, Event, Exit, ExitCause, Failure, FailureKind, Header, Hello,
    Kind, Outcome, Output, PackedStringsBuf, Position, ProcessMode, Renew, Request, Resume,
    Selector, Stage, Start, StartEvent, Stdin, StreamId, TrustStore, boot, encode, files, limits,
    namespaces,
    network::{self, NetworkRequest},
    service::{self, ServiceRequest},
    terminal::{self, TerminalRequest},
};

const DOCUMENT: &str = include_str!("../PROTOCOL.md");

/// Returns the format of every message, as serde sees it.
fn registry() -> Registry {
    let bytes = valid_bytes().leak();
    let config = TracerConfig::default().default_borrowed_bytes_value(bytes);
    let mut tracer = Tracer::new(config);
    let samples = Samples::new();
    macro_rules! trace {
        ($($message:ty),* $(,)?) => {
            $(tracer.trace_type::<$message>(&samples).unwrap();)*
        };
    }
    // Enums inside of others must be traced by themselves.
    trace!(
        Hello<'_>,
        Request<'_>,
        Event<'_>,
        Outcome<'_>,
        ExitCause,
        Output,
        ProcessMode,
        Selector<'_>,
        Stdin,
        files::FileOperation<'_>,
        files::FileReply<'_>,
        files::FileKind,
        files::ChangeKind,
        files::Owner<'_>,
        files::Precondition,
        files::WriteMode,
        files::TreeRecord<'_>,
        files::Content<'_>,
        files::EditRecord<'_>,
        terminal::TerminalRequest<'_>,
        terminal::UnreadOutput,
        terminal::InputKind,
        service::ServiceRequest<'_>,
        service::WaitFor,
        service::LogStart,
        service::Spec<'_>,
        service::Probe<'_>,
        service::RestartPolicy,
        service::Phase<'_>,
        service::FailureReason<'_>,
        network::NetworkRequest<'_>,
        network::Want<'_>,
        network::Target<'_>,
        network::Answer,
        network::Refusal,
        boot::Boot<'_>,
        boot::BootLink,
        namespaces::Namespaces<'_>,
        namespaces::IdMapping,
    );
    tracer.registry().unwrap()
}

/// Returns bytes that are valid wherever bytes have a structure of their own: a
/// program of a log pattern, whose instructions, classes and size are chosen so that
/// they are also packed strings, resource limits and attributes.
fn valid_bytes() -> Vec<u8> {
    // 257 instructions: a match, and pairs of a byte and a match.
    let mut bytes = vec![1, 1, 0, 0];
    // Then 3 classes of 32 bytes. Together they have a multiple of 17 bytes.
    for _ in 0..128 + 3 * 32 / 4 {
        bytes.extend([1, 0x10, 0, 0]);
    }
    bytes
}

/// A row of a table: a number or name, and what belongs to it.
type Row = (String, String);

/// Returns the tables that the document must have, by the name of the type.
fn expected_tables() -> BTreeMap<String, Vec<Row>> {
    let mut tables = BTreeMap::new();
    for (name, container) in registry() {
        let rows = match container {
            ContainerFormat::Enum(variants) => variants
                .iter()
                .map(|(number, variant)| {
                    let fields = variant_fields(&variant.value);
                    (number.to_string(), format!("{}{fields}", variant.name))
                })
                .collect(),
            ContainerFormat::Struct(fields) => fields.iter().map(field_row).collect(),
            // Transparent: described where it is used.
            ContainerFormat::NewTypeStruct(_) => continue,
            other => panic!("{name}: {other:?}"),
        };
        tables.insert(name, rows);
    }
    tables.insert("FailureKind".to_owned(), numbered(&FailureKind::ALL));
    tables.insert("Stage".to_owned(), numbered(&Stage::ALL));
    tables
}

fn numbered(all: &[impl std::fmt::Debug]) -> Vec<Row> {
    let rows = all.iter().enumerate();
    rows.map(|(number, value)| (number.to_string(), format!("{value:?}")))
        .collect()
}

fn field_row(field: &Named<Format>) -> Row {
    (field.name.clone(), type_name(&field.value))
}

fn variant_fields(variant: &VariantFormat) -> String {
    match variant {
        VariantFormat::Unit => String::new(),
        VariantFormat::NewType(value) => format!("({})", type_name(value)),
        VariantFormat::Struct(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|field| format!("{}: {}", field.name, type_name(&field.value)))
                .collect();
            format!(" {{ {} }}", fields.join(", "))
        }
        other => panic!("{other:?}"),
    }
}

fn type_name(format: &Format) -> String {
    match format {
        // A set of bits, encoded as its number.
        Format::TypeName(name) if name == "Capabilities" => "u64".to_owned(),
        Format::TypeName(name) => name.clone(),
        Format::Bool => "bool".to_owned(),
        Format::I8 => "i8".to_owned(),
        Format::I64 => "i64".to_owned(),
        Format::U8 => "u8".to_owned(),
        Format::U16 => "u16".to_owned(),
        Format::U32 => "u32".to_owned(),
        Format::U64 => "u64".to_owned(),
        Format::Str => "text".to_owned(),
        Format::Bytes => "bytes".to_owned(),
        Format::Option(value) => format!("{}?", type_name(value)),
        Format::TupleArray { content, size } => {
            assert_eq!(type_name(content), "u8");
            format!("[{size}]")
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the tables of the document, by the heading before them.
fn documented_tables() -> BTreeMap<String, Vec<Row>> {
    let mut tables: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let mut heading = None;
    for line in DOCUMENT.lines() {
        if let Some(title) = line.strip_prefix('#') {
            let name = title.trim_start_matches('#').trim();
            heading = Some(name.trim_matches('`').to_owned());
            continue;
        }
        let (Some(name), Some(row)) = (&heading, line.strip_prefix("| `")) else {
            continue;
        };
        let mut cells = row.split(" | ");
        let first = cells.next().unwrap().trim_end_matches('`');
        let second = cells
            .next()
            .unwrap()
            .trim_end_matches(" |")
            .trim_matches('`');
        let rows = tables.entry(name.clone()).or_default();
        rows.push((first.to_owned(), second.to_owned()));
    }
    tables
}

#[test]
fn every_message_is_documented_field_by_field_as_it_is_encoded() {
    let documented = documented_tables();
    for (name, rows) in expected_tables() {
        assert_eq!(documented.get(&name), Some(&rows), "the table of `{name}`");
    }
}
#[test]
fn the_numbers_of_kinds_capabilities_and_limits_are_right() {
    let documented = documented_tables();
    for (name, rows) in [
        ("Kinds", kinds()),
        ("Capabilities", capabilities()),
        ("Limits", limit_rows()),
        ("Properties", properties()),
        ("Examples", examples()),
    ] {
        let found = documented.get(name);
        assert_eq!(found, Some(&rows), "{name} must be:\n{}", table(&rows));
    }
}

fn table(rows: &[Row]) -> String {
    rows.iter().fold(String::new(), |mut out, (first, second)| {
        writeln!(out, "| `{first}` | `{second}` |").unwrap();
        out
    })
}

fn kinds() -> Vec<Row> {
    let mut kinds = vec![
        Kind::Hello,
        Kind::Open,
        Kind::Event,
        Kind::Close,
        Kind::Cancel,
        Kind::Ack,
    ];
    let channels = [Channel::Stdin, Channel::Stdout, Channel::Stderr];
    kinds.extend(channels.map(Kind::Data));
    kinds.extend(channels.map(Kind::End));
    kinds.extend(channels.map(Kind::Credit));
    let row = |kind: Kind| {
        let header = Header {
            length: 0,
            stream: None,
            kind,
        };
        let name = format!("{kind:?}").replace('(', " ").replace(')', "");
        (hex(&header.to_bytes()[7..]), name)
    };
    kinds.into_iter().map(row).collect()
}

fn capabilities() -> Vec<Row> {
    let bits = 0..Capabilities::ALL.bits().count_ones();
    bits.map(|bit| {
        let mut names = Capabilities::from_bits(1 << bit).names();
        (bit.to_string(), names.next().unwrap().to_owned())
    })
    .collect()
}

fn limit_rows() -> Vec<Row> {
    macro_rules! rows {
        ($($limit:ident),* $(,)?) => {
            vec![$((stringify!($limit).to_owned(), limits::$limit.to_string())),*]
        };
    }
    rows!(
        MAX_PAYLOAD,
        MAX_WINDOW,
        MAX_STREAMS,
        MAX_BUILD,
        MAX_FAILURE_TEXT,
        MAX_TAG,
        MAX_SERVICE_NAME,
        MAX_COMMAND,
        MAX_LISTED,
        MAX_DESCENDANTS,
        MAX_COMMAND_NAME,
        MAX_GAPS,
        MIN_OUTPUT_BUFFER,
        MAX_PATH,
        MAX_RECORD,
        MAX_INLINE,
        MAX_XATTRS,
        MAX_DEPTH,
        MAX_PATTERN_INSTRUCTIONS,
        MAX_PATTERN_CLASSES,
        MAX_HOST_NAME,
        MAX_CAPTURED_PREFIXES,
    )
}

/// Returns a row for each request; those about files are alike.
fn properties() -> Vec<Row> {
    each_request(property_row)
}

/// Calls a function with a sample of each request.
fn each_request<T>(call: impl FnMut(&Request<'_>) -> T) -> Vec<T> {
    let argv = argv();
    let start = start(&argv, ProcessMode::Foreground);
    let process = Selector::Id(1);
    let position = Position {
        offset: 0,
        window: 1,
    };
    let background = self::start(&argv, ProcessMode::Background);
    let name = "web";
    let requests = [
        Request::Ping,
        Request::Start(start),
        Request::Start(background),
        Request::PowerOff { grace_ms: 0 },
        Request::Resume(Resume {
            ticket: 0,
            stdout: position,
            stderr: position,
        }),
        Request::Attach(Attach {
            process,
            stdout: Some(position),
            stderr: Some(position),
            stdin: false,
        }),
        Request::Signal { process, signal: 1 },
        Request::Kill { process },
        Request::Detach { process },
        Request::Forget { process },
        Request::List { after: 0 },
        Request::Files(files::FileRequest {
            root: b"/",
            operation: files::FileOperation::Sync { path: b"" },
        }),
        Request::Terminal(TerminalRequest::Open(terminal::OpenTerminal {
            start: background,
            size: SIZE,
            unread: terminal::UnreadOutput::Block,
        })),
        Request::Terminal(TerminalRequest::Attach(terminal::AttachTerminal {
            process,
            output: position,
            writer: 0,
        })),
        Request::Terminal(TerminalRequest::Resize {
            process,
            size: SIZE,
        }),
        Request::Terminal(TerminalRequest::Signal { process, signal: 1 }),
        Request::Terminal(TerminalRequest::WriteInput(terminal::WriteInput {
            process,
            bytes: b"",
            kind: terminal::InputKind::Secret,
        })),
        Request::Terminal(TerminalRequest::GetState { process }),
        Request::Terminal(TerminalRequest::Rename { process, tag: "" }),
        Request::Terminal(TerminalRequest::List { after: 0 }),
        Request::Service(ServiceRequest::Start(service::StartService {
            name,
            ticket: 0,
            if_same: false,
            spec: b"",
        })),
        Request::Service(ServiceRequest::Wait {
            name,
            until: service::WaitFor::Ready,
        }),
        Request::Service(ServiceRequest::GetState { name }),
        Request::Service(ServiceRequest::Stop { name }),
        Request::Service(ServiceRequest::Restart { name }),
        Request::Service(ServiceRequest::Remove { name }),
        Request::Service(ServiceRequest::List { after: "" }),
        Request::Service(ServiceRequest::ReadLog(service::ReadLog {
            name,
            from: service::LogStart::Lines(1),
            follow: false,
            window: 1,
        })),
        Request::Dial { port: 1 },
        Request::SetClock { wall_time_ns: 0 },
        Request::ListTrees { after: 0 },
        Request::Freeze,
        Request::Thaw,
        Request::Renew(Renew {
            boot_id: [0; 16],
            reset_key: [0; 16],
            seed: [0; 32],
            wall_time_ns: 0,
            hostname: "cell",
        }),
        Request::Network(NetworkRequest::Capture { prefixes: b"" }),
        Request::Network(NetworkRequest::Accept { ticket: 0 }),
        Request::CountProcesses,
        Request::SetTrustStore(TrustStore::default()),
    ];
    requests.iter().map(call).collect()
}

#[test]
fn a_window_replaces_every_one_that_a_request_names() {
    let windows = each_request(|request| request.with_window(9).outputs(9));
    for outputs in windows {
        let named = [outputs.stdout, outputs.stderr];
        assert!(
            named.into_iter().flatten().all(|window| window == 9),
            "{outputs:?}"
        );
    }
}

fn property_row(request: &Request<'_>) -> Row {
    let outputs = request.outputs(1);
    let outputs = match (outputs.stdout, outputs.stderr) {
        (None, None) => "no output",
        (Some(_), None) => "Stdout",
        _ => "Stdout, Stderr",
    };
    let event = match request.start_event() {
        StartEvent::None => "no event".to_owned(),
        event => format!("{event:?}"),
    };
    let sender = match request.is_for_owner() {
        true => "owner",
        false => "anybody",
    };
    let recovery = request.recovery();
    (
        request_name(request),
        format!("{recovery:?}; {outputs}; {event}; {sender}"),
    )
}

fn request_name(request: &Request<'_>) -> String {
    let outer = |debug: String| {
        let end = debug.find(['(', ' ']).unwrap_or(debug.len());
        debug[..end].to_owned()
    };
    match request {
        Request::Start(start) => match start.mode {
            ProcessMode::Foreground => "Start in the foreground".to_owned(),
            ProcessMode::Background => "Start in the background".to_owned(),
        },
        Request::Terminal(request) => format!("Terminal({})", outer(format!("{request:?}"))),
        Request::Service(request) => format!("Service({})", outer(format!("{request:?}"))),
        Request::Network(request) => format!("Network({})", outer(format!("{request:?}"))),
        request => outer(format!("{request:?}")),
    }
}

const SIZE: terminal::Size = terminal::Size {
    columns: 80,
    rows: 24,
};

fn argv() -> PackedStringsBuf {
    let mut argv = PackedStringsBuf::new();
    assert!(argv.push(b"echo") && argv.push(b"hello"));
    argv
}

fn start(argv: &PackedStringsBuf, mode: ProcessMode) -> Start<'_> {
    Start {
        ticket: 300,
        tag: "job",
        argv: argv.as_packed(),
        env: Default::default(),
        default_env: true,
        cwd: b"",
        make_cwd: false,
        user: "",
        umask: None,
        nice: 0,
        rlimits: Default::default(),
        stdin: Stdin::Empty,
        mode,
        timeout_ms: 0,
        keep: 0,
        limits: Default::default(),
    }
}

/// Returns the conversation of a command, frame by frame.
fn examples() -> Vec<Row> {
    let stream = StreamId::new(7).unwrap();
    let argv = argv();
    let exit = Exit {
        cause: ExitCause::Code(0),
        user_us: 400,
        system_us: 600,
        peak_rss_kib: 1000,
        wall_us: 2000,
        stdout_bytes: 6,
        stderr_bytes: 0,
        outputs_cut: false,
        oom_kills: 0,
        tree_ended: Some(true),
    };
    let failure = Failure::from_errno(2, Stage::Exec, "no such file");
    let frame = |name: &str, write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        (name.to_owned(), hex(&bytes))
    };
    vec![
        frame("Hello of a host", &|out| {
            encode::hello(out, &Hello::new("example 1.0", 65536, [0; 16])).unwrap();
        }),
        frame("Open, Ping", &|out| {
            encode::open(out, stream, &Request::Ping).unwrap();
        }),
        frame("Close, Pong", &|out| {
            encode::close(out, stream, &Outcome::Pong).unwrap();
        }),
        frame("Ack", &|out| encode::ack(out, stream)),
        frame("Open, Start of echo hello with default variables", &|out| {
            let start = start(&argv, ProcessMode::Foreground);
            encode::open(out, stream, &Request::Start(start)).unwrap();
        }),
        frame("Event, Started with id 5 and pid 300", &|out| {
            let started = Event::Started { id: 5, pid: 300 };
            encode::event(out, stream, &started).unwrap();
        }),
        frame("Data on Stdout, hello and a newline", &|out| {
            out.extend(encode::data_header(stream, Channel::Stdout, 6).unwrap());
            out.extend(b"hello\n");
        }),
        frame("End of Stdout", &|out| {
            encode::end(out, stream, Channel::Stdout);
        }),
        frame("Credit of 65536 bytes for Stdout", &|out| {
            encode::credit(out, stream, Channel::Stdout, 65536);
        }),
        frame("Close, Exited with code 0", &|out| {
            encode::close(out, stream, &Outcome::Exited(exit)).unwrap();
        }),
        frame("Close, Failed: no such file", &|out| {
            encode::close(out, stream, &Outcome::Failed(failure)).unwrap();
        }),
        frame("Cancel", &|out| encode::cancel(out, stream)),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
