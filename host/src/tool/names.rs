//! Names in policies and requests.

/// The longest name of an image, a language, a grant or a caller.
pub(super) const MAX_NAME: usize = 64;

/// Returns whether something can have this name. What names a path or a host cannot.
pub(super) fn is_name(name: &str) -> bool {
    let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte);
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(is_permitted)
        && !name.starts_with(['.', '-'])
}

/// Returns whether an environment variable can have this name.
pub(super) fn is_variable(name: &str) -> bool {
    let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(is_permitted)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns a text of a request as it is shown in errors and receipts: short, and safe to print.
pub(super) fn shown(text: &str) -> String {
    const SHOWN: usize = 100;
    let short: String = text.chars().take(SHOWN).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{:?}{more}", crate::printable(short.as_bytes()))
}
