use std::sync::atomic::{AtomicU64, Ordering};

use vmcell_wire::{CgroupLimits, ProcessMode, RlimitsBuf, Start, Stdin};

/// A process to start, with default settings.
pub(crate) struct Spec {
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) env: Vec<Vec<u8>>,
    pub(crate) rlimits: RlimitsBuf,
    pub(crate) start: Start<'static>,
    pub(crate) tag: String,
    pub(crate) user: String,
    pub(crate) cwd: String,
}

static LAST_TICKET: AtomicU64 = AtomicU64::new(0);

impl Spec {
    pub(crate) fn new(argv: &[&str]) -> Self {
        let ticket = LAST_TICKET.fetch_add(1, Ordering::Relaxed) + 1;
        Self {
            argv: argv.iter().map(|text| text.as_bytes().to_vec()).collect(),
            env: vec![b"PATH=/usr/bin:/bin".to_vec()],
            rlimits: RlimitsBuf::new(),
            tag: format!("t{ticket}"),
            user: String::new(),
            cwd: String::new(),
            start: Start {
                ticket,
                tag: "",
                argv: Default::default(),
                env: Default::default(),
                default_env: false,
                cwd: b"",
                make_cwd: false,
                user: "",
                umask: None,
                nice: 0,
                rlimits: Default::default(),
                stdin: Stdin::Empty,
                mode: ProcessMode::Foreground,
                timeout_ms: 0,
                keep: 0,
                limits: CgroupLimits::default(),
            },
        }
    }

    pub(crate) fn shell(script: &str) -> Self {
        Self::new(&["sh", "-c", script])
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn background(self) -> Self {
        self.with(|spec| spec.start.mode = ProcessMode::Background)
    }

    pub(crate) fn with_stdin(self) -> Self {
        self.with(|spec| spec.start.stdin = Stdin::Stream)
    }
}
