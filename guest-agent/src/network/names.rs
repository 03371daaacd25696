use alloc::{boxed::Box, vec::Vec};
use core::net::{Ipv4Addr, Ipv6Addr};

use super::prefix::{NAMES_V4, NAMES_V6, Prefix};

/// The addresses that stand for names.
///
/// A name has the same ones as long as the VM lives, because programs may use them for
/// as long. None stands for another name later.
#[derive(Default)]
pub(super) struct Names {
    /// In the order of their addresses.
    all: Vec<Box<str>>,
    /// Indexes of `all`, in the order of the names.
    sorted: Vec<usize>,
}

/// The maximum number of names: a program that looks up any number of them does not
/// use up the guest's memory.
const MAX_NAMES: usize = 4096;

/// How many addresses of a block of 256 are used. Some programs take the first and the
/// last one for special.
const USED_OF_BLOCK: usize = 250;

impl Names {
    /// Returns the addresses of a name. `None`: there are too many names.
    pub(super) fn addresses(&mut self, name: &str) -> Option<(Ipv4Addr, Ipv6Addr)> {
        let all = &self.all;
        let place = self.sorted.binary_search_by(|index| {
            let other = all.get(*index).map_or("", |name| name);
            other.cmp(name)
        });
        let index = match place {
            Ok(place) => *self.sorted.get(place)?,
            Err(_) if self.all.len() >= MAX_NAMES => return None,
            Err(place) => {
                let index = self.all.len();
                self.all.push(name.into());
                self.sorted.insert(place, index);
                index
            }
        };
        Some((v4(index)?, v6(index)?))
    }

    /// Returns the name for which an address stands.
    pub(super) fn name(&self, address: Ipv6Addr) -> Option<&str> {
        let index = match address.to_ipv4_mapped() {
            Some(address) => {
                let [_, _, block, place] = address.octets().map(usize::from);
                let block = block.checked_sub(1)?.checked_mul(USED_OF_BLOCK)?;
                block.checked_add(place.checked_sub(1)?)?
            }
            None => {
                let [.., last] = address.segments();
                usize::from(last).checked_sub(1)?
            }
        };
        // Others than the name's addresses have the same index, too.
        let is_own =
            v4(index).map(|v4| v4.to_ipv6_mapped()) == Some(address) || v6(index) == Some(address);
        self.all.get(index).filter(|_| is_own).map(|name| &**name)
    }
}

/// Returns whether an address is one of those that stand for names.
pub(super) fn stands_for_name(address: Ipv6Addr) -> bool {
    let address = Prefix::host(address);
    NAMES_V4.covers(address) || NAMES_V6.covers(address)
}

fn v4(index: usize) -> Option<Ipv4Addr> {
    let block = index.div_euclid(USED_OF_BLOCK).checked_add(1)?;
    let place = index.rem_euclid(USED_OF_BLOCK).checked_add(1)?;
    let (block, place) = (u8::try_from(block).ok()?, u8::try_from(place).ok()?);
    Some(Ipv4Addr::new(198, 18, block, place))
}

fn v6(index: usize) -> Option<Ipv6Addr> {
    let (prefix, _) = NAMES_V6.address();
    let [a, b, c, d, ..] = prefix.segments();
    let last = u16::try_from(index.checked_add(1)?).ok()?;
    Some(Ipv6Addr::new(a, b, c, d, 0, 0, 0, last))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_has_addresses_of_its_own_forever() {
        let mut names = Names::default();
        let mut seen = HashSet::new();
        let name = |number: usize| alloc::format!("host-{}.example", number.wrapping_mul(7919));
        for number in 0..MAX_NAMES {
            let (v4, v6) = names.addresses(&name(number)).unwrap();
            assert!(seen.insert(v4.to_ipv6_mapped()) && seen.insert(v6));
            assert!(v4.octets()[2] > 0, "the resolver has one of these");
            assert!(stands_for_name(v4.to_ipv6_mapped()));
            assert!(stands_for_name(v6));
            assert_eq!(names.name(v4.to_ipv6_mapped()), Some(&*name(number)));
            assert_eq!(names.name(v6), Some(&*name(number)));
        }
        assert_eq!(names.addresses("one.too.many"), None);
        for number in 0..MAX_NAMES {
            let (v4, v6) = names.addresses(&name(number)).unwrap();
            assert!(!seen.insert(v4.to_ipv6_mapped()) && !seen.insert(v6));
        }
    }

    #[test]
    fn an_address_that_stands_for_no_name_has_none() {
        let mut names = Names::default();
        names.addresses("example.com").unwrap();
        for address in [
            "::ffff:198.18.0.53",
            "::ffff:198.18.0.0",
            "::ffff:198.18.1.2",
            "::ffff:198.19.1.1",
            "::ffff:198.18.1.255",
            "fd76:6d63:656c:6c00::",
            "fd76:6d63:656c:6c00::2",
            "fd76:6d63:656c:6c00:1::1",
        ] {
            assert_eq!(names.name(address.parse().unwrap()), None, "{address}");
        }
        assert!(!stands_for_name("::ffff:198.20.0.1".parse().unwrap()));
        assert!(!stands_for_name("fd76:6d63:656c:6c01::1".parse().unwrap()));
    }
}
