use clap::{Args, Subcommand};
use vmcell::receipt::ReceiptPublicKey;

#[derive(Debug, Args)]
pub(crate) struct ReceiptArguments {
    #[command(subcommand)]
    pub(super) command: ReceiptCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ReceiptCommand {
    /// List the receipts, the newest last.
    List(ListArguments),
    /// Print a receipt as JSON.
    Show(ShowArguments),
    /// Check that no receipt was changed, removed or moved.
    Verify(VerifyArguments),
    /// Make a key that signs receipts from now on, unless there is one, and
    /// print its public key.
    Key(KeyArguments),
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Print only the last N receipts.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(super) last: usize,
    /// Print the list as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Number of the receipt, its audit ID, or the beginning of its digest.
    #[arg(value_name = "RECEIPT")]
    pub(super) receipt: String,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Public key to check signatures with, as `vmcell receipt key` prints it.
    /// By default it is that of this installation.
    #[arg(long, value_name = "KEY")]
    pub(super) public_key: Option<ReceiptPublicKey>,
    /// Print the outcome as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct KeyArguments {
    /// Print the key as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl ReceiptArguments {
    /// Returns whether errors are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            ReceiptCommand::List(arguments) => arguments.json,
            ReceiptCommand::Show(_) => false,
            ReceiptCommand::Verify(arguments) => arguments.json,
            ReceiptCommand::Key(arguments) => arguments.json,
        }
    }
}
