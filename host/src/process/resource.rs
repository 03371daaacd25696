/// A resource of a process that can be limited: `setrlimit(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// Seconds of processor time.
    CpuTime,
    /// The size of a file that it creates, in bytes.
    FileSize,
    /// Its data segment, in bytes.
    Data,
    /// Its stack, in bytes.
    Stack,
    /// The size of a core dump, in bytes.
    Core,
    /// Processes of its user.
    Processes,
    /// One more than the largest file descriptor.
    OpenFiles,
    /// Memory that it may lock, in bytes.
    LockedMemory,
    /// Its address space, in bytes.
    AddressSpace,
}

impl Resource {
    /// Returns the number of the resource in Linux on x86-64.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::CpuTime => 0,
            Self::FileSize => 1,
            Self::Data => 2,
            Self::Stack => 3,
            Self::Core => 4,
            Self::Processes => 6,
            Self::OpenFiles => 7,
            Self::LockedMemory => 8,
            Self::AddressSpace => 9,
        }
    }
}
