use super::element::Element;

/// Whether a component of a pattern matches a name.
///
/// When something does not fit, only the last star passed can help, by taking
/// one byte more: whatever an earlier one could still take, the last one can
/// take too. So each byte of the pattern is compared with each byte of the name
/// at most once.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let mut pattern = pattern;
    let mut name = name;
    // What follows the last star, and what of the name it has left.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        let fits = match (Element::split(pattern), name.split_first()) {
            (Ok(Some((Element::Star, behind))), _) => {
                pattern = behind;
                star = Some((pattern, name));
                continue;
            }
            (Ok(Some((element, behind))), Some((&byte, rest))) if element.matches(byte) => {
                Some((behind, rest))
            }
            (Ok(None), None) => return true,
            _ => star
                .and_then(|(behind, left)| Some((behind, left.get(1..)?)))
                .inspect(|again| star = Some(*again)),
        };
        let Some(next) = fits else {
            return false;
        };
        (pattern, name) = next;
    }
}
