//! Parses how the user names a process of a VM.

use vmcell::{ProcessId, ProcessSelector};

/// Parses a tag, the number of a process, or `pid:` and its PID.
pub(crate) fn parse(text: &str) -> Result<ProcessSelector, String> {
    let number = |digits: &str| {
        let number = digits.parse();
        number.map_err(|_| format!("{digits:?} is not the number of a process"))
    };
    if let Some(pid) = text.strip_prefix("pid:") {
        return Ok(ProcessSelector::Pid(number(pid)?));
    }
    if text.is_empty() {
        return Err("expected a process".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(ProcessId(number(text)?).into());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_three_names() {
        assert_eq!(parse("7"), Ok(ProcessSelector::Id(ProcessId(7))));
        assert_eq!(parse("pid:312"), Ok(ProcessSelector::Pid(312)));
        for tag in ["web", "proc-1", "1a"] {
            assert_eq!(parse(tag), Ok(ProcessSelector::Tag(tag.to_owned())));
        }
        for text in ["", "pid:", "pid:web", "pid:-1", "4294967296"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
