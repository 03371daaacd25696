//! `vmcell receipt show`: prints a receipt.

use anyhow::Context as _;
use vmcell::receipt::ReceiptLog;
use vmcell_cli::show::json;

use super::arguments::ShowArguments;
use crate::failure::print_json;

pub(super) fn show(arguments: &ShowArguments) -> anyhow::Result<u8> {
    let wanted = &arguments.receipt;
    let found = ReceiptLog::open()?.find(wanted)?;
    let entry = found.with_context(|| {
        format!("there is no receipt {wanted:?}: `vmcell receipt list` lists the last ones")
    })?;
    print_json(&json::value(entry));
    Ok(0)
}
