use super::tcp::AttemptError;

/// Succeeds if the path exists, following symbolic links.
pub(super) fn attempt(path: &[u8]) -> Result<(), AttemptError> {
    rustix::fs::stat(path)?;
    Ok(())
}
