//! `vmcell receipt`: shows and verifies what `vmcell tool` has recorded.

mod arguments;
mod key;
mod list;
mod show;
mod verify;

pub(crate) use arguments::ReceiptArguments;

use arguments::ReceiptCommand;

pub(crate) fn receipt(arguments: &ReceiptArguments) -> anyhow::Result<u8> {
    match &arguments.command {
        ReceiptCommand::List(arguments) => list::list(arguments),
        ReceiptCommand::Show(arguments) => show::show(arguments),
        ReceiptCommand::Verify(arguments) => verify::verify(arguments),
        ReceiptCommand::Key(arguments) => key::key(arguments),
    }
}
