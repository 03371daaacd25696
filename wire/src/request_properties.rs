/// How a request continues on a new link when its link is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// It fails: the host cannot know whether it was carried out, or the agent has
    /// cancelled it.
    Fail,
    /// It is sent again, which has no further effect.
    Repeat,
    /// It is sent again. [`NotFound`](crate::FailureKind::NotFound) then means that
    /// the first request has succeeded.
    RepeatRemoval,
    /// The list is requested again, and the entries that came before are dropped.
    RepeatList,
    /// The foreground process is [resumed](crate::Request::Resume), or started if
    /// the agent does not know its ticket.
    Resume,
    /// The stream attaches to its process again, where it broke off.
    Reattach,
    /// The log is read on from where it broke off.
    ResumeLog,
}

/// The outputs of a stream: the channels from the guest that it uses, each with
/// the bytes that may be sent before more credit is granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// `Stdout`; `None` if it is not used.
    pub stdout: Option<u32>,
    /// `Stderr`.
    pub stderr: Option<u32>,
}

impl Outputs {
    /// No outputs.
    pub const NONE: Self = Self {
        stdout: None,
        stderr: None,
    };

    /// Returns `Stdout` alone.
    #[must_use]
    pub const fn stdout(window: u32) -> Self {
        Self {
            stdout: Some(window),
            stderr: None,
        }
    }

    /// Returns both.
    #[must_use]
    pub const fn both(window: u32) -> Self {
        Self {
            stdout: Some(window),
            stderr: Some(window),
        }
    }
}

/// The event that precedes data on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartEvent {
    /// None: data may follow the request at once, if it has outputs.
    None,
    /// [`Event::Started`](crate::Event::Started).
    Started,
    /// [`Event::Attached`](crate::Event::Attached).
    Attached,
    /// [`Event::Connected`](crate::Event::Connected).
    Connected,
}
