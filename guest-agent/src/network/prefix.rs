use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use vmcell_wire::{limits::MAX_CAPTURED_PREFIXES, network::PREFIX_LEN};

/// All addresses that begin with the same bits. Those of IPv4 are
/// [mapped](Ipv4Addr::to_ipv6_mapped) to IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    /// The address, whose other bits are zero.
    bits: u128,
    length: u32,
}

/// The number of leading bits that all mapped IPv4 addresses have in common.
const MAPPED: u32 = 96;

impl Prefix {
    pub(super) const fn v4(a: u8, b: u8, c: u8, d: u8, length: u32) -> Self {
        let address = Ipv4Addr::new(a, b, c, d).to_ipv6_mapped();
        Self::new(address, MAPPED.saturating_add(length))
    }

    pub(super) const fn v6(segments: [u16; 8], length: u32) -> Self {
        let [a, b, c, d, e, f, g, h] = segments;
        Self::new(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
    }

    const fn new(address: Ipv6Addr, length: u32) -> Self {
        let length = if length > 128 { 128 } else { length };
        Self {
            bits: address.to_bits() & mask(length),
            length,
        }
    }

    /// Returns the one that has a single address.
    pub(super) const fn host(address: Ipv6Addr) -> Self {
        Self::new(address, 128)
    }

    /// Returns the prefixes of a request. A rest that is not a whole one is ignored.
    pub(super) fn unpack(packed: &[u8]) -> impl Iterator<Item = Self> {
        let (prefixes, _) = packed.as_chunks::<PREFIX_LEN>();
        let prefixes = prefixes.iter().take(MAX_CAPTURED_PREFIXES);
        prefixes.filter_map(|packed| {
            let (address, [length]) = packed.split_first_chunk::<16>()? else {
                return None;
            };
            Some(Self::new(Ipv6Addr::from(*address), (*length).into()))
        })
    }

    /// Returns whether it has all addresses of another one.
    pub(super) const fn covers(self, other: Self) -> bool {
        self.length <= other.length && other.bits & mask(self.length) == self.bits
    }

    /// Returns whether it has an IPv4 address, and no other.
    pub(super) const fn is_v4(self) -> bool {
        Self::v4(0, 0, 0, 0, 0).covers(self)
    }

    /// Returns its address, and the number of its bits that count.
    pub(super) const fn address(self) -> (Ipv6Addr, u32) {
        (Ipv6Addr::from_bits(self.bits), self.length)
    }

    /// Returns the same for one of IPv4.
    pub(super) const fn v4_address(self) -> Option<(Ipv4Addr, u32)> {
        match Ipv6Addr::from_bits(self.bits).to_ipv4_mapped() {
            Some(address) if self.is_v4() => Some((address, self.length.saturating_sub(MAPPED))),
            _ => None,
        }
    }

    fn halves(self) -> Option<[Self; 2]> {
        let length = self.length.checked_add(1).filter(|length| *length <= 128)?;
        let bit = 1u128.checked_shl(128u32.checked_sub(length)?)?;
        let with = |bits| Self { bits, length };
        Some([with(self.bits), with(self.bits | bit)])
    }
}

const fn mask(length: u32) -> u128 {
    match u128::MAX.checked_shl(128u32.saturating_sub(length)) {
        Some(mask) => mask,
        None => 0,
    }
}

/// The addresses that the agent has on the loopback interface.
pub(super) const OWN_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(super) const OWN_V6: Ipv6Addr = Ipv6Addr::new(0xfd76, 0x6d63, 0x656c, 0x6c01, 0, 0, 0, 1);

/// The addresses that stand for names.
pub(super) const NAMES_V4: Prefix = Prefix::v4(198, 18, 0, 0, 15);
pub(super) const NAMES_V6: Prefix = Prefix::v6([0xfd76, 0x6d63, 0x656c, 0x6c00, 0, 0, 0, 0], 64);

/// The address from which programs of clouds read credentials. No program in a VM has
/// any there: it is taken so that the host sees who tries.
const CLOUD_METADATA: Prefix = Prefix::v4(169, 254, 169, 254, 32);

/// The addresses that are never taken, whatever a request names: the guest's own ones.
pub(super) const NEVER: [Prefix; 8] = [
    Prefix::v4(127, 0, 0, 0, 8),
    Prefix::v4(192, 0, 2, 1, 32),
    Prefix::v4(224, 0, 0, 0, 4),
    Prefix::v4(255, 255, 255, 255, 32),
    Prefix::v6([0, 0, 0, 0, 0, 0, 0, 1], 128),
    Prefix::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    Prefix::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
    Prefix::v6([0xfd76, 0x6d63, 0x656c, 0x6c01, 0, 0, 0, 0], 64),
];

/// The addresses of IPv4 that are not public: RFC 6890. Programs of the guest may use
/// them among themselves.
pub(super) const NOT_PUBLIC: [Prefix; 11] = [
    Prefix::v4(0, 0, 0, 0, 8),
    Prefix::v4(10, 0, 0, 0, 8),
    Prefix::v4(100, 64, 0, 0, 10),
    Prefix::v4(127, 0, 0, 0, 8),
    Prefix::v4(169, 254, 0, 0, 16),
    Prefix::v4(172, 16, 0, 0, 12),
    Prefix::v4(192, 0, 0, 0, 24),
    Prefix::v4(192, 0, 2, 0, 24),
    Prefix::v4(192, 168, 0, 0, 16),
    NAMES_V4,
    Prefix::v4(224, 0, 0, 0, 3),
];

/// What is always taken, other than the public addresses of IPv4: those for names, the
/// public ones of IPv6, and those by which IPv6 reaches IPv4.
pub(super) const ALWAYS: [Prefix; 5] = [
    NAMES_V4,
    CLOUD_METADATA,
    NAMES_V6,
    Prefix::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3),
    Prefix::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
];

/// Returns the prefixes that make up all public addresses of IPv4.
pub(super) fn public_v4() -> Vec<Prefix> {
    let mut public = Vec::new();
    let mut rest = alloc::vec![Prefix::v4(0, 0, 0, 0, 0)];
    while let Some(prefix) = rest.pop() {
        if NOT_PUBLIC.iter().any(|other| other.covers(prefix)) {
            continue;
        }
        match prefix.halves() {
            Some(halves) if NOT_PUBLIC.iter().any(|other| prefix.covers(*other)) => {
                rest.extend(halves);
            }
            _ => public.push(prefix),
        }
    }
    public
}

/// Addresses of IPv4 from one on, up to the next range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressRange {
    pub(super) first: u32,
    pub(super) is_taken: bool,
}

/// Returns which addresses of IPv4 are taken, with these in addition: all of them, in
/// their order.
pub(super) fn ranges_v4(extra: &[Prefix]) -> Vec<AddressRange> {
    let fixed = NEVER.iter().chain(&ALWAYS).chain(&NOT_PUBLIC);
    let mut firsts = alloc::vec![0];
    for (address, length) in fixed.chain(extra).filter_map(|it| it.v4_address()) {
        let first = address.to_bits();
        firsts.push(first);
        let size = 1u32.checked_shl(32u32.saturating_sub(length));
        firsts.extend(size.and_then(|size| first.checked_add(size)));
    }
    firsts.sort_unstable();
    let mut ranges: Vec<AddressRange> = Vec::new();
    for first in firsts {
        let is_taken = takes_v4(Ipv4Addr::from_bits(first), extra);
        if ranges.last().is_none_or(|last| last.is_taken != is_taken) {
            ranges.push(AddressRange { first, is_taken });
        }
    }
    ranges
}

fn takes_v4(address: Ipv4Addr, extra: &[Prefix]) -> bool {
    let address = Prefix::host(address.to_ipv6_mapped());
    let has = |prefixes: &[Prefix]| prefixes.iter().any(|prefix| prefix.covers(address));
    !has(&NEVER) && (has(&ALWAYS) || has(extra) || !has(&NOT_PUBLIC))
}

/// Returns those of the prefixes that are to be taken in addition: not what is taken
/// anyway, nor what never is.
pub(super) fn extra(prefixes: impl Iterator<Item = Prefix>) -> Vec<Prefix> {
    let mut extra: Vec<Prefix> = Vec::new();
    let public = public_v4();
    for prefix in prefixes {
        let fixed = ALWAYS.iter().chain(&NEVER).chain(&public);
        if !fixed.chain(&extra).any(|other| other.covers(prefix)) {
            extra.push(prefix);
        }
    }
    extra
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(address: Ipv6Addr, length: u8) -> [u8; PREFIX_LEN] {
        let mut packed = [length; PREFIX_LEN];
        packed[..16].copy_from_slice(&address.octets());
        packed
    }

    fn host(address: Ipv4Addr) -> Prefix {
        Prefix::host(address.to_ipv6_mapped())
    }

    proptest! {
        #[test]
        fn an_address_is_either_public_or_not(address: [u8; 4]) {
            let address = host(Ipv4Addr::from(address));
            let covering = |prefixes: &[Prefix]| {
                prefixes.iter().filter(|prefix| prefix.covers(address)).count()
            };
            let is_not_public = covering(&NOT_PUBLIC) > 0;
            prop_assert_eq!(covering(&public_v4()), usize::from(!is_not_public));
        }

        #[test]
        fn an_address_is_in_the_range_that_says_what_becomes_of_it(
            address: u32, extra: [u32; 2], lengths in [0..33u32, 0..33u32],
        ) {
            let extra = [0, 1].map(|index: usize| {
                let [a, b, c, d] = extra[index].to_be_bytes();
                Prefix::v4(a, b, c, d, lengths[index])
            });
            let ranges = ranges_v4(&extra);
            let range = ranges.iter().rfind(|range| range.first <= address);
            let expected = takes_v4(Ipv4Addr::from_bits(address), &extra);
            prop_assert_eq!(range.map(|range| range.is_taken), Some(expected));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].is_taken != pair[1].is_taken));
        }

        #[test]
        fn any_bytes_are_some_prefixes(bytes: Vec<u8>) {
            for prefix in Prefix::unpack(&bytes) {
                prop_assert!(prefix.covers(prefix));
                let (_, length) = prefix.address();
                prop_assert!(length <= 128);
            }
        }
    }

    #[test]
    fn the_public_addresses_take_few_routes() {
        let public = public_v4();
        assert!(public.len() < 100, "{}", public.len());
        for known in [
            [8, 8, 8, 8],
            [1, 1, 1, 1],
            [192, 0, 1, 1],
            [223, 255, 255, 255],
        ] {
            let known = host(Ipv4Addr::from(known));
            assert!(
                public.iter().any(|prefix| prefix.covers(known)),
                "{known:?}"
            );
        }
    }

    #[test]
    fn a_prefix_of_a_request_is_unpacked() {
        let ten = packed(Ipv4Addr::new(10, 1, 2, 3).to_ipv6_mapped(), 104);
        let private = packed("fd00::1".parse().unwrap(), 8);
        let both = [ten, private].concat();
        let unpacked: Vec<_> = Prefix::unpack(&both).collect();
        let fd = Prefix::v6([0xfd00, 0, 0, 0, 0, 0, 0, 0], 8);
        assert_eq!(unpacked, [Prefix::v4(10, 0, 0, 0, 8), fd]);
        assert_eq!(
            unpacked[0].v4_address(),
            Some((Ipv4Addr::new(10, 0, 0, 0), 8))
        );
        assert_eq!(unpacked[1].v4_address(), None);
        assert_eq!(Prefix::unpack(&both[..20]).count(), 1);
        let many = packed(Ipv6Addr::UNSPECIFIED, 0).repeat(300);
        assert_eq!(Prefix::unpack(&many).count(), MAX_CAPTURED_PREFIXES);
    }

    #[test]
    fn what_is_taken_anyway_or_never_is_not_extra() {
        let ten = Prefix::v4(10, 0, 0, 0, 8);
        let prefixes = [
            Prefix::v4(8, 8, 8, 0, 24),
            Prefix::v4(127, 0, 0, 1, 32),
            Prefix::v6([0, 0, 0, 0, 0, 0, 0, 1], 128),
            ten,
            Prefix::v4(10, 1, 0, 0, 16),
            ten,
        ];
        assert_eq!(extra(prefixes.into_iter()), [ten]);
    }
}
