use serde::{Deserialize, Serialize};

/// How much a request may ask for. What is over a limit is refused, and never cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolLimits {
    /// The number of files.
    pub files: u64,
    /// The bytes of one file.
    pub file_bytes: u64,
    /// The bytes of all files together.
    pub total_bytes: u64,
    /// The bytes of standard input.
    pub stdin_bytes: u64,
    /// The number of arguments of a command.
    pub arguments: u64,
    /// The bytes of all arguments together.
    pub argument_bytes: u64,
    /// How long a command may run.
    pub timeout_seconds: u64,
    /// How long it may run if the request does not say.
    pub default_timeout_seconds: u64,
    /// The bytes of each output, and of all output files together.
    pub output_bytes: u64,
    /// The same if the request does not say.
    pub default_output_bytes: u64,
    /// The number of output files.
    pub outputs: u64,
    /// The number of hosts, and of network grants.
    pub destinations: u64,
    /// The number of secrets.
    pub secrets: u64,
    /// The memory of a VM.
    pub memory_mib: u32,
    /// How long all but the command may take: the start of the VM, files, and the end.
    pub overhead_seconds: u64,
    /// The folders of the guest in which files are written and read.
    pub roots: Vec<String>,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            files: 64,
            file_bytes: 1 << 20,
            total_bytes: 8 << 20,
            stdin_bytes: 1 << 20,
            arguments: 256,
            argument_bytes: 64 << 10,
            timeout_seconds: 300,
            default_timeout_seconds: 30,
            output_bytes: 1 << 20,
            default_output_bytes: 64 << 10,
            outputs: 16,
            destinations: 16,
            secrets: 16,
            memory_mib: 512,
            overhead_seconds: 300,
            roots: ["/work", "/workspace", "/tmp"].map(str::to_owned).to_vec(),
        }
    }
}

impl ToolLimits {
    /// Returns how long the JSON of a request may be: its content may be escaped or in Base64.
    pub fn request_bytes(&self) -> u64 {
        /// For all but contents.
        const FRAME: u64 = 256 << 10;
        let contents = self.total_bytes.saturating_add(self.stdin_bytes);
        let contents = contents.saturating_add(self.argument_bytes);
        contents.saturating_mul(2).saturating_add(FRAME)
    }
}
