//! `vmcell tool schema`: prints the JSON schema of requests.

use vmcell::tool::request_schema;

use super::{arguments::SchemaArguments, policy};
use crate::failure::print_json;

pub(super) fn schema(arguments: &SchemaArguments) -> anyhow::Result<u8> {
    let policy = policy::read(&arguments.policy)?;
    print_json(&request_schema(&policy));
    Ok(0)
}
