use std::time::SystemTime;

use serde::{Serialize, Serializer};
use vmcell_tree::Date;

use super::{Retention, ToolOutputFile};
use crate::{
    process::{Cause, Output},
    receipt::ReceiptId,
};

/// What a call has done.
///
/// As JSON it has the fields of the [`Output`], such as `exit_code`, `stdout`, `stderr`,
/// `timed_out`, `cause` and `usage`, beside its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the VM, or of the workspace that was kept.
    pub sandbox_id: String,
    /// The id of the call, as in its receipt and its audit events.
    pub audit_id: String,
    /// What the command printed, with secrets masked, and how it ended.
    pub output: Output,
    /// Why the command ended. It may be known even if the guest did not confirm the exit.
    pub cause: Option<Cause>,
    /// The files that were asked for.
    pub outputs: Vec<ToolOutputFile>,
    /// What became of the sandbox.
    pub retention: Retention,
    /// When what was kept is deleted.
    pub expires: Option<SystemTime>,
    /// Where its receipt is. `None` if that could not be written.
    pub receipt: Option<ReceiptId>,
}

impl ToolResult {
    /// Returns whether the command, or the whole call, took too long.
    pub fn timed_out(&self) -> bool {
        self.cause == Some(Cause::Timeout)
    }
}

impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |it: serde_json::Result<_>| it.map_err(serde::ser::Error::custom);
        let mut object = value(serde_json::to_value(&self.output))?;
        object["sandbox_id"] = self.sandbox_id.clone().into();
        object["audit_id"] = self.audit_id.clone().into();
        object["cause"] = self.cause.map(|cause| cause.name()).into();
        object["timed_out"] = self.timed_out().into();
        object["outputs"] = value(serde_json::to_value(&self.outputs))?;
        object["retention"] = self.retention.name().into();
        let expires = self.expires.map(|time| Date::of(time).rfc3339());
        object["expires_at"] = expires.into();
        object["receipt"] = value(serde_json::to_value(&self.receipt))?;
        object.serialize(serializer)
    }
}
