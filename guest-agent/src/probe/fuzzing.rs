//! What the fuzz target `http` reaches.

use alloc::string::String;

use vmcell_wire::service::Http;

use super::response::{Verdict, examine};

/// Evaluates the answer of a web server as far as it was read: whether a probe that wants a
/// status from 200 to 299 and this text succeeds. `None`: it needs more.
pub fn examine_response(
    response: &[u8],
    has_ended: bool,
    text: &[u8],
) -> Option<Result<(), String>> {
    let wanted = Http {
        port: 80,
        path: "/",
        min_status: 200,
        max_status: 299,
        body: text,
    };
    match examine(response, has_ended, &wanted) {
        Verdict::Success => Some(Ok(())),
        Verdict::Failure(reason) => Some(Err(reason)),
        Verdict::Incomplete => None,
    }
}
