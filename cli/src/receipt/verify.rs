//! `vmcell receipt verify`: checks all receipts.

use serde_json::json;
use vmcell::receipt::ReceiptLog;
use vmcell_cli::exit::INCOMPLETE;

use super::arguments::VerifyArguments;
use crate::failure::{print_json, report};

pub(super) fn verify(arguments: &VerifyArguments) -> anyhow::Result<u8> {
    let found = ReceiptLog::open()?.verify(arguments.public_key.as_ref())?;
    if arguments.json {
        print_json(&json!({
            "valid": found.is_valid(),
            "receipts": found.receipts,
            "signed": found.signed,
            "uncounted": found.uncounted,
            "head": found.head,
            "problem": found.problem.map(|problem| json!({
                "code": problem.code(),
                "line": problem.line(),
                "message": problem.to_string(),
            })),
        }));
    } else {
        println!(
            "{} receipts are right, {} of them signed",
            found.receipts, found.signed
        );
        println!("the last one has the digest {}", found.head);
        if let Some(problem) = found.problem {
            report(&problem.to_string());
        }
    }
    Ok(if found.is_valid() { 0 } else { INCOMPLETE })
}
