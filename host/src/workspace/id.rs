use super::workspaces::FILES;
use crate::{error::Error, random::random_bytes};

/// How the id of a workspace begins, unless it is told otherwise.
pub(super) const PREFIX: &str = "ws";

/// The letters of ids, without those that look like others.
const LETTERS: &[u8; 23] = b"abcdefghjkmnpqrstuvwxyz";

const ID_LETTERS: usize = 12;

/// Returns an id that no workspace has had, such as `ws-abcdefghjkmn`.
pub(super) fn new_id(prefix: &str) -> Result<String, Error> {
    // More than needed, so that no letter is more likely than another.
    let random: [u8; 4 * ID_LETTERS] = random_bytes()?;
    let evenly = random.iter().map(|byte| usize::from(byte & 31));
    let letters = evenly.filter_map(|number| LETTERS.get(number)).copied();
    let id: String = letters.take(ID_LETTERS).map(char::from).collect();
    match id.len() {
        ID_LETTERS => Ok(format!("{prefix}-{id}")),
        // One time in millions.
        _ => new_id(prefix),
    }
}

/// The longest id in bytes: that of a VM.
const MAX_ID: usize = 48;

/// Returns whether a text can be the id of a workspace: that of its VM, its host name, and
/// the name of its folder, beside which there are files.
pub(super) fn is_id(text: &str) -> bool {
    let is_permitted = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (1..=MAX_ID).contains(&text.len())
        && text.bytes().all(is_permitted)
        && !text.starts_with('-')
        && !FILES.contains(&text)
}

/// Checks an id that was given.
pub(super) fn check_id(id: &str) -> Result<(), Error> {
    match is_id(id) {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{id:?} cannot be an id: it has 1 to {MAX_ID} lower-case letters, \
             digits and hyphens, begins with a letter or a digit, and is none of {FILES:?}"
        ))),
    }
}

/// Returns whether a text looks like an id that was made here.
fn looks_generated(text: &str) -> bool {
    let letters = text
        .strip_prefix(PREFIX)
        .and_then(|it| it.strip_prefix('-'));
    letters.is_some_and(|letters| {
        letters.len() == ID_LETTERS && letters.bytes().all(|byte| LETTERS.contains(&byte))
    })
}

/// The longest name, label or snapshot name in bytes.
const MAX_NAME: usize = 64;

/// Checks a name of a workspace or of a snapshot.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), Error> {
    let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(is_permitted)
        && !name.starts_with(['-', '.']);
    match is_name {
        // Else one could be taken for the other.
        true if looks_generated(name) => Err(Error::Invalid(format!(
            "{name:?} looks like an id: choose another {what}"
        ))),
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{name:?} cannot be a {what}: it has 1 to {MAX_NAME} letters, digits, dots, hyphens \
             and underscores, and begins with a letter, a digit or an underscore"
        ))),
    }
}

/// Checks a label: its key is a name, and its value is text that can be printed.
pub(super) fn check_label(key: &str, value: &str) -> Result<(), Error> {
    check_name("label", key)?;
    let is_text = value.len() <= 256 && !value.chars().any(char::is_control);
    match is_text {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "the value of the label {key:?} has control characters or more than 256 bytes"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::VmName;

    #[test]
    fn ids_are_random_and_recognised() {
        let ids: std::collections::BTreeSet<_> = (0..100).map(|_| new_id("vm").unwrap()).collect();
        assert_eq!(ids.len(), 100);
        assert!(ids.iter().all(|id| is_id(id)), "{ids:?}");
        assert!(ids.iter().all(|id| id.starts_with("vm-")), "{ids:?}");
    }

    #[test]
    fn an_id_is_that_of_a_vm_and_a_safe_name_of_a_folder() {
        for id in ["a", "0", "my-build-2", "ws-abc", "a-", &"a".repeat(48)] {
            assert!(check_id(id).is_ok(), "{id}");
            assert!(VmName::new(id).is_some(), "{id}");
        }
        for id in [
            "",
            "-a",
            ".",
            "..",
            ".a",
            "a.b",
            "a/b",
            "a_b",
            "A",
            "é",
            "a\n",
            "a b",
            "lock",
            "listed",
            &"a".repeat(49),
        ] {
            let error = check_id(id).unwrap_err().to_string();
            assert!(error.contains("cannot be an id"), "{error}");
        }
    }

    #[test]
    fn names_cannot_be_paths_options_or_ids() {
        for name in ["a", "my-build_1.2", "_", &"a".repeat(64)] {
            assert!(check_name("name", name).is_ok(), "{name}");
        }
        let id = new_id(PREFIX).unwrap();
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "-a",
            "a b",
            "é",
            "a\n",
            &"a".repeat(65),
            &id,
        ] {
            assert!(check_name("name", name).is_err(), "{name}");
        }
        assert!(check_label("team", "größer 1").is_ok());
        assert!(check_label("team", "a\u{1b}[31m").is_err());
        assert!(check_label("", "a").is_err());
    }
}
