//! `vmcell receipt key`: makes the key that signs receipts.

use serde_json::json;
use vmcell::receipt::ReceiptLog;

use super::arguments::KeyArguments;
use crate::failure::print_json;

pub(super) fn key(arguments: &KeyArguments) -> anyhow::Result<u8> {
    let key = ReceiptLog::open()?.create_key()?;
    match arguments.json {
        true => print_json(&json!({ "public_key": key.to_string() })),
        false => println!("{key}"),
    }
    Ok(0)
}
