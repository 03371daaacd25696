use rmcp::model::ToolAnnotations;

/// What clients are told about the effects of a tool.
#[derive(Clone, Copy)]
pub(crate) struct Hints {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
}

impl Hints {
    /// It changes nothing.
    pub(crate) const READS: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
    };

    /// It adds something each time.
    pub(crate) const ADDS: Self = Self {
        read_only: false,
        idempotent: false,
        ..Self::READS
    };

    /// It sets something, and loses nothing.
    pub(crate) const SETS: Self = Self {
        idempotent: true,
        ..Self::ADDS
    };

    /// What it replaces or deletes is lost.
    pub(crate) const DESTROYS: Self = Self {
        destructive: true,
        ..Self::SETS
    };

    /// What it replaces or deletes is lost, and it cannot be repeated.
    pub(crate) const REPLACES: Self = Self {
        idempotent: false,
        ..Self::DESTROYS
    };

    /// It runs a program of the caller, which may do anything in its VM, and reach what the
    /// network policy allows.
    pub(crate) const RUNS: Self = Self {
        open_world: true,
        ..Self::REPLACES
    };

    pub(crate) fn annotations(self, title: &str) -> ToolAnnotations {
        ToolAnnotations::with_title(title)
            .read_only(self.read_only)
            .destructive(self.destructive)
            .idempotent(self.idempotent)
            .open_world(self.open_world)
    }
}
