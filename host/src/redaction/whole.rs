use std::sync::Arc;

use super::{MASK, SecretSearch, SecretSet, Thoroughness};

impl SecretSet {
    /// Masks the secrets in bytes of which nothing is missing. Returns whether there were any.
    pub(crate) fn mask_whole(self: &Arc<Self>, bytes: &mut [u8]) -> bool {
        let mut search = SecretSearch::new(self.clone(), Thoroughness::Thorough);
        let found = search.search(bytes, 0);
        for range in &found {
            let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            if let Some(secret) = bytes.get_mut(index(range.start)..index(range.end)) {
                secret.fill(MASK);
            }
        }
        !found.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_wherever_it_is() {
        let value = b"s3cret-value".as_slice();
        let set = Arc::new(SecretSet::new([value], []));
        let mut bytes = b"\xffs3cret-value,s3cret-value".to_vec();
        assert!(set.mask_whole(&mut bytes));
        assert_eq!(bytes, b"\xff************,************");
        assert!(!set.mask_whole(&mut b"s3cret-valu".to_vec()));
    }
}
