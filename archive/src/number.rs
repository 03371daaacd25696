//! Numbers in the fields of a header: tar(5).

use crate::ArchiveError;

/// Parses octal digits among spaces, or GNU's binary numbers, which start with
/// a byte above 127. An empty field is 0.
pub(crate) fn signed(field: &[u8]) -> Result<i64, ArchiveError> {
    let (start, base, digits) = match field {
        [0xff, rest @ ..] => (-1, 256, rest),
        [first @ 0x80..=0xff, rest @ ..] => (i64::from(first & 0x7f), 256, rest),
        _ => (0, 8, until_nul(field).trim_ascii()),
    };
    digits
        .iter()
        .try_fold(start, |number: i64, byte| {
            let digit = match (base, byte) {
                (256, byte) => *byte,
                (_, b'0'..=b'7') => byte - b'0',
                _ => return None,
            };
            number.checked_mul(base)?.checked_add(digit.into())
        })
        .ok_or(ArchiveError::BadNumber)
}

/// Parses a number that is not negative.
pub(crate) fn unsigned<T: TryFrom<i64>>(field: &[u8]) -> Result<T, ArchiveError> {
    T::try_from(signed(field)?).map_err(|_| ArchiveError::BadNumber)
}

/// Parses the decimal number of a pax record.
pub(crate) fn decimal<T: std::str::FromStr>(text: &[u8]) -> Result<T, ArchiveError> {
    let text = std::str::from_utf8(text).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or(ArchiveError::BadNumber)
}

/// Returns the bytes before the first NUL.
pub(crate) fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_octal_or_binary() {
        let numbers: [(&[u8], i64); 8] = [
            (b"", 0),
            (&[0; 8], 0),
            (b"   17 \0", 15),
            (b"77777777777\0", 0o77_777_777_777),
            (&[0x80, 0, 0, 0, 1, 0, 0, 2], (1 << 24) + 2),
            (&[0x80, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], 1 << 56),
            (&[0xff; 12], -1),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0], -256),
        ];
        for (field, number) in numbers {
            assert_eq!(signed(field).unwrap(), number, "{field:?}");
        }
        let malformed: [&[u8]; 5] = [
            b"8",
            b"+7",
            b"-7",
            b"1 1",
            &[0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ];
        for field in malformed {
            assert!(signed(field).is_err(), "{field:?}");
        }
        assert!(unsigned::<u64>(&[0xff; 12]).is_err());
        assert!(unsigned::<u32>(&[0x80, 0, 0, 1, 0, 0, 0, 0]).is_err());
    }
}
