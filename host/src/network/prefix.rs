use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use super::{PolicyError, address::unmapped};

/// Addresses that begin with the same bits: `10.0.0.0/8`, `192.0.2.7`, `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// Returns the prefix of an address alone.
    pub fn of(address: IpAddr) -> Self {
        let address = unmapped(address);
        Self {
            address,
            bits: size(address),
        }
    }

    /// Returns the first of its addresses.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns how many leading bits all its addresses have in common.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Returns whether an address is one of them. An IPv4 address that is mapped to an
    /// IPv6 address is that IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, unmapped(address)) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                own.to_bits() == other.to_bits() & mask
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                own.to_bits() == other.to_bits() & mask_v6(self.bits)
            }
            _ => false,
        }
    }

    /// Returns it as the wire has it: an IPv6 address, and the number of its bits.
    pub(super) fn to_wire(self) -> [u8; vmcell_wire::network::PREFIX_LEN] {
        let (address, bits) = match self.address {
            IpAddr::V4(address) => (address.to_ipv6_mapped(), 96 + self.bits),
            IpAddr::V6(address) => (address, self.bits),
        };
        let mut wire = [0; vmcell_wire::network::PREFIX_LEN];
        let [front @ .., last] = &mut wire;
        front.copy_from_slice(&address.octets());
        *last = bits;
        wire
    }
}

fn size(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn mask_v6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

impl FromStr for Prefix {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let bad = |reason| PolicyError::Address {
            text: text.to_owned(),
            reason,
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| bad("it is not an IPv4 or IPv6 address"))?;
        if let IpAddr::V6(address) = address
            && address.to_ipv4_mapped().is_some()
        {
            return Err(bad("write the IPv4 address that it contains"));
        }
        let Some(bits) = bits else {
            return Ok(Self::of(address));
        };
        let bits = bits
            .parse()
            .ok()
            .filter(|bits| *bits <= size(address))
            .ok_or_else(|| {
                bad("after the slash is how many bits count: 32 at most, 128 in IPv6")
            })?;
        let prefix = Self { address, bits };
        match prefix.contains(address) {
            true => Ok(prefix),
            false => Err(bad("bits after those that count must be zero")),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits == size(self.address) {
            true => self.address.fmt(f),
            false => write!(f, "{}/{}", self.address, self.bits),
        }
    }
}

impl Prefix {
    /// Returns a prefix of IPv6 addresses.
    pub(super) const fn v6(address: Ipv6Addr, bits: u8) -> Self {
        Self {
            address: IpAddr::V6(address),
            bits,
        }
    }

    /// Returns a prefix of IPv4 addresses.
    pub(super) const fn v4(octets: [u8; 4], bits: u8) -> Self {
        let [a, b, c, d] = octets;
        Self {
            address: IpAddr::V4(std::net::Ipv4Addr::new(a, b, c, d)),
            bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_contains_what_begins_with_it() {
        let contains = |prefix: &str, address: &str| {
            let prefix: Prefix = prefix.parse().unwrap();
            prefix.contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1"));
        assert!(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1"));
        assert!(!contains("10.0.0.0/8", "::a00:1"));
        assert!(contains("192.0.2.7", "192.0.2.7"));
        assert!(!contains("192.0.2.7", "192.0.2.8"));
        assert!(contains("0.0.0.0/0", "203.0.113.1"));
        assert!(contains("::/0", "2001:db8::1"));
        assert!(!contains("::/0", "10.0.0.1"));
        assert!(contains("fd00::/8", "fdff::1"));
        assert!(!contains("fd00::/8", "fe80::1"));
    }

    #[test]
    fn only_prefixes_are_read_and_written_as_such() {
        for text in ["10.0.0.0/8", "192.0.2.7", "fd00::/8", "::1", "0.0.0.0/0"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!(
            "10.0.0.1/32".parse::<Prefix>().unwrap().to_string(),
            "10.0.0.1"
        );
        for text in [
            "10.0.0.1/8",
            "10.0.0.0/33",
            "fd00::/129",
            "10.0.0/8",
            "0x7f.1",
            "010.0.0.1",
            "2130706433",
            "::ffff:10.0.0.1",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "",
        ] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
