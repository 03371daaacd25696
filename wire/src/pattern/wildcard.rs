use super::element::Element;

/// Returns whether a component of a pattern matches a name.
///
/// On a mismatch it backtracks only to the last star, which then matches one more
/// byte: whatever an earlier star could match, the last one can match too. So each
/// byte of the pattern is compared with each byte of the name at most once.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let mut pattern = pattern;
    let mut name = name;
    // The pattern after the last star, and the part of the name to match with it.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        let fits = match (Element::split(pattern), name.split_first()) {
            (Ok(Some((Element::Star, after))), _) => {
                pattern = after;
                star = Some((pattern, name));
                continue;
            }
            (Ok(Some((element, after))), Some((&byte, rest))) if element.matches(byte) => {
                Some((after, rest))
            }
            (Ok(None), None) => return true,
            _ => star
                .and_then(|(after, left)| Some((after, left.get(1..)?)))
                .inspect(|again| star = Some(*again)),
        };
        let Some(next) = fits else {
            return false;
        };
        (pattern, name) = next;
    }
}
