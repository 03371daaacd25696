//! Which addresses are those of public hosts.

use std::net::{IpAddr, Ipv6Addr};

use super::Prefix;

/// What an address is, if it is not that of a public host.
const NOT_PUBLIC: [(Prefix, &str); 31] = [
    (Prefix::v4([0, 0, 0, 0], 8), "this network"),
    (Prefix::v4([10, 0, 0, 0], 8), "private"),
    (
        Prefix::v4([100, 64, 0, 0], 10),
        "shared by customers of a provider",
    ),
    (Prefix::v4([127, 0, 0, 0], 8), "loopback"),
    (Prefix::v4([169, 254, 0, 0], 16), "link-local"),
    (Prefix::v4([172, 16, 0, 0], 12), "private"),
    (Prefix::v4([192, 0, 0, 0], 24), "reserved"),
    (Prefix::v4([192, 0, 2, 0], 24), "for documentation"),
    (Prefix::v4([192, 88, 99, 0], 24), "reserved"),
    (Prefix::v4([192, 168, 0, 0], 16), "private"),
    (Prefix::v4([198, 18, 0, 0], 15), "for benchmarks"),
    (Prefix::v4([198, 51, 100, 0], 24), "for documentation"),
    (Prefix::v4([203, 0, 113, 0], 24), "for documentation"),
    (Prefix::v4([224, 0, 0, 0], 4), "multicast"),
    (Prefix::v4([240, 0, 0, 0], 4), "reserved"),
    (v6([0, 0, 0, 0], 8), "reserved"),
    (
        v6([0x64, 0xff9b, 0, 0], 96),
        "a translation of an IPv4 address",
    ),
    (
        v6([0x64, 0xff9b, 1, 0], 48),
        "a translation of an IPv4 address",
    ),
    (v6([0x100, 0, 0, 0], 64), "discarded"),
    (v6([0x2001, 0, 0, 0], 32), "a tunnel"),
    (v6([0x2001, 0x2, 0, 0], 48), "for benchmarks"),
    (v6([0x2001, 0x10, 0, 0], 28), "reserved"),
    (v6([0x2001, 0x20, 0, 0], 28), "reserved"),
    (v6([0x2001, 0xdb8, 0, 0], 32), "for documentation"),
    (v6([0x2002, 0, 0, 0], 16), "a tunnel"),
    (v6([0x3fff, 0, 0, 0], 20), "for documentation"),
    (v6([0x5f00, 0, 0, 0], 16), "reserved"),
    (v6([0xfc00, 0, 0, 0], 7), "private"),
    (v6([0xfe80, 0, 0, 0], 10), "link-local"),
    (v6([0xfec0, 0, 0, 0], 10), "private"),
    (v6([0xff00, 0, 0, 0], 8), "multicast"),
];

const fn v6(segments: [u16; 4], bits: u8) -> Prefix {
    let [a, b, c, d] = segments;
    Prefix::v6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), bits)
}

/// Returns what an address is if it is not that of a public host; `None` if it is.
pub(super) fn special_use(address: IpAddr) -> Option<&'static str> {
    let address = unmapped(address);
    let listed = NOT_PUBLIC
        .iter()
        .find(|(prefix, _)| prefix.contains(address));
    match (listed, address) {
        (Some((_, what)), _) => Some(what),
        // What is outside of the space for hosts has no use yet.
        (None, IpAddr::V6(address)) if address.segments()[0] & 0xe000 != 0x2000 => Some("reserved"),
        (None, _) => None,
    }
}

/// Returns an IPv4 address that is mapped to an IPv6 address as an IPv4 address.
pub(super) fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or(address.into(), IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_public_hosts_are_public() {
        let of = |text: &str| special_use(text.parse().unwrap());
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.1.2.3",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "::ffff:1.1.1.1",
        ] {
            assert_eq!(of(public), None, "{public}");
        }
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "198.18.0.53",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::101:101",
            "64:ff9b:1::a00:1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "4000::1",
            "fc00::1",
            "fd76:6d63:656c:6c00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(of(special).is_some(), "{special}");
        }
    }
}
