//! `vmcell receipt list`: lists receipts.

use std::collections::VecDeque;

use serde_json::{Value, json};
use vmcell::receipt::{ReceiptEntry, ReceiptLog};
use vmcell_cli::show::Table;

use super::arguments::ListArguments;
use crate::failure::print_json;

pub(super) fn list(arguments: &ListArguments) -> anyhow::Result<u8> {
    let mut last = VecDeque::new();
    ReceiptLog::open()?.for_each(|entry| {
        last.push_back(entry);
        if last.len() > arguments.last {
            last.pop_front();
        }
        true
    })?;
    match arguments.json {
        true => {
            let receipts: Vec<_> = last.iter().map(as_json).collect();
            print_json(&json!({ "receipts": receipts }));
        }
        false => table(&last).print_to_stdout()?,
    }
    Ok(0)
}

fn as_json(entry: &ReceiptEntry) -> Value {
    let mut object = json!({ "sequence": entry.sequence, "digest": entry.digest });
    for key in [
        "audit_id",
        "kind",
        "caller",
        "started",
        "command",
        "failure",
        "sandbox_id",
    ] {
        object[key] = entry.receipt.get(key).cloned().unwrap_or_default();
    }
    object["signed"] = entry.signature.is_some().into();
    object
}

fn table(entries: &VecDeque<ReceiptEntry>) -> Table<6> {
    let mut table = Table::new(["N", "AUDIT ID", "STARTED", "CALLER", "OUTCOME", "COMMAND"]);
    for entry in entries {
        let text = |key| entry.text(key).unwrap_or("-").to_owned();
        let words = entry.receipt["command"].as_array().into_iter().flatten();
        let words: Vec<_> = words.filter_map(Value::as_str).collect();
        table.add([
            entry.sequence.to_string(),
            text("audit_id"),
            text("started"),
            text("caller"),
            entry.text("failure").unwrap_or("ok").to_owned(),
            words.join(" "),
        ]);
    }
    table
}
