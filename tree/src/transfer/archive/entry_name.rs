use super::ArchiveProblem;

/// Normalizes the name of an entry: removes `.` and empty components, and with
/// them the slash of an absolute name, as other programs do. The result is empty
/// for the top.
pub(super) fn normal_path(name: &[u8]) -> Result<Vec<u8>, ArchiveProblem> {
    if name.is_empty() || name.contains(&0) {
        return Err(ArchiveProblem::BadName);
    }
    let mut path = Vec::with_capacity(name.len());
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => continue,
            b".." => return Err(ArchiveProblem::ParentName),
            _ if part.len() > 255 => return Err(ArchiveProblem::BadName),
            _ => {}
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    Ok(path)
}

/// Splits a path into its parent directory and its last name.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => {
            let (parent, rest) = path.split_at(slash);
            (parent, rest.get(1..).unwrap_or_default())
        }
        None => (b"", path),
    }
}
