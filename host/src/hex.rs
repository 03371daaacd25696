//! Bytes as hexadecimal digits.

/// Returns the bytes as lowercase digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Returns the bytes that these lowercase digits stand for; `None` if they are not exactly
/// `N`.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (number, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * number..2 * number + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_for_exactly_so_many_bytes() {
        assert_eq!(encode(&[0, 0x1f, 0xff]), "001fff");
        assert_eq!(decode::<3>("001fff"), Some([0, 0x1f, 0xff]));
        for other in ["", "001f", "001fff00", "001ffg", "+01fff", "001fFF"] {
            assert_eq!(decode::<3>(other), None, "{other:?}");
        }
    }
}
