//! Policy for the addresses that may be connected to.
//!
//! Decides on addresses, never on names: the caller checks each resolved address and connects to that same address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The set of addresses that may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressPolicy {
    /// Any address: the user configured the target.
    Anywhere,
    /// Public addresses only: a server supplied the target.
    PublicOnly,
    /// Public addresses and one zone: a server in that zone supplied the target.
    PublicAnd(NetworkZone),
}

/// A range of addresses that is not reachable from the internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkZone {
    /// The local machine.
    Loopback,
    /// Private networks, including shared and unique local addresses (RFC 1918, 6598, 4193).
    Private,
    /// The local link (RFC 3927, 4291).
    LinkLocal,
}

impl AddressPolicy {
    /// Reports whether this address may be connected to.
    pub fn allows(&self, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::PublicOnly => is_public(address),
            Self::PublicAnd(zone) => is_public(address) || NetworkZone::from_address(address) == Some(*zone),
        }
    }
}

impl NetworkZone {
    /// Returns the zone of an address, or `None` for public and for unusable addresses.
    ///
    /// Only IPv4-mapped addresses are unwrapped. Tunnelled addresses (NAT64, 6to4, Teredo) end in a remote zone.
    pub fn from_address(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            address if METADATA_ENDPOINTS.contains(&address) => None,
            IpAddr::V4(address) => zone_of_v4(address),
            IpAddr::V6(address) => zone_of_v6(address),
        }
    }
}

/// Metadata endpoints at which cloud providers serve credentials. They belong to no zone.
const METADATA_ENDPOINTS: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Parses the host of a URL as an IP address. Returns `None` for a name. IPv6 addresses are in brackets, as in a URL.
pub fn ip_literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    }
}

fn zone_of_v4(address: Ipv4Addr) -> Option<NetworkZone> {
    match address.octets() {
        [127, ..] => Some(NetworkZone::Loopback),
        [10, ..] | [172, 16..32, ..] | [192, 168, ..] | [100, 64..128, ..] => Some(NetworkZone::Private),
        [169, 254, ..] => Some(NetworkZone::LinkLocal),
        _ => None,
    }
}

fn zone_of_v6(address: Ipv6Addr) -> Option<NetworkZone> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(NetworkZone::Loopback),
        [0xfc00..0xfe00, ..] => Some(NetworkZone::Private),
        [0xfe80..0xfec0, ..] => Some(NetworkZone::LinkLocal),
        _ => None,
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Reports whether the special-purpose registry (RFC 6890) lists the address as globally reachable.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        [0 | 10 | 127, ..] => true,
        [100, second, ..] => second & 0xc0 == 64,
        [169, 254, ..] => true,
        [172, second, ..] => second & 0xf0 == 16,
        // Protocol assignments, documentation, 6to4 relays.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] => true,
        [192, 168, ..] => true,
        [198, 18 | 19, ..] => true,
        [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    !special
}

/// Global unicast is 2000::/3. An embedded IPv4 address must be public as well.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [.., seventh, eighth] = address.segments();
    match address.segments() {
        // Compatible, mapped, and NAT64: the packet is delivered to the embedded IPv4 address. This includes `::` and
        // `::1`, as 0.0.0.0 and 0.0.0.1.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            is_public_v4(v4_from_segments(seventh, eighth))
        }
        // Teredo: the relay, and the obfuscated client address.
        [0x2001, 0, high, low, ..] => {
            is_public_v4(v4_from_segments(high, low)) && is_public_v4(v4_from_segments(!seventh, !eighth))
        }
        // Protocol assignments including benchmarking, and documentation.
        [0x2001, 0..0x200, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        // 6to4.
        [0x2002, high, low, ..] => is_public_v4(v4_from_segments(high, low)),
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn v4_from_segments(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    /// Classification of a URL's host.
    #[derive(Debug, PartialEq)]
    enum HostClass {
        /// A public address.
        Public,
        /// A non-public address, allowed only if the user configured it.
        Private,
        /// A host name.
        Name,
        /// An invalid URL.
        Nothing,
    }
    use HostClass::{Name, Nothing, Private, Public};

    fn check(host: &str) -> HostClass {
        let Ok(url) = Url::parse(&format!("https://{host}/x")) else { return Nothing };
        let Some(address) = ip_literal(url.host_str().expect("an https URL has a host")) else { return Name };
        assert!(AddressPolicy::Anywhere.allows(address), "{host}");
        if AddressPolicy::PublicOnly.allows(address) { Public } else { Private }
    }

    #[test]
    fn addresses_are_classified_in_every_spelling() {
        for (host, expected) in [
            ("127.0.0.1", Private),
            ("127.0.0.1.", Private),
            ("127.1", Private),
            ("127.0.1", Private),
            ("0177.1", Private),
            ("0177.0.0.1", Private),
            ("0x7f.1", Private),
            ("0x7f.0x0.0x0.0x1", Private),
            ("0X7F000001", Private),
            ("0x7f000001", Private),
            ("017700000001", Private),
            ("2130706433", Private),
            ("127.255.255.254", Private),
            ("%31%32%37.0.0.1", Private),
            ("127。0。0。1", Private),
            ("１２７.0.0.1", Private),
            ("①②⑦.0.0.1", Private),
            ("0", Private),
            ("0x0", Private),
            ("0.0.0.0", Private),
            ("0.1.2.3", Private),
            ("user:pass@10.0.0.1", Private),
            ("10.0.0.1:8080", Private),
            ("167772161", Private),
            ("012.0.0.1", Private),
            ("169.254.169.254", Private),
            ("2852039166", Private),
            ("0xa9fea9fe", Private),
            ("0251.0376.0251.0376", Private),
            ("0xa9.254.0251.254", Private),
            ("169.254.43518", Private),
            ("[::ffff:169.254.169.254]", Private),
            ("[::ffff:a9fe:a9fe]", Private),
            ("[0:0:0:0:0:ffff:127.0.0.1]", Private),
            ("[::FFFF:7F00:1]", Private),
            ("[::1]", Private),
            ("[0000::0001]", Private),
            ("[::]", Private),
            ("8.8.8.8", Public),
            ("134744072", Public),
            ("010.010.010.010", Public),
            ("0x08080808", Public),
            ("[2606:4700::1111]", Public),
            ("[::ffff:8.8.8.8]", Public),
            ("localhost", Name),
            ("127.0.0.1.example.com", Name),
            ("0x7f.1.example", Name),
            ("xn--bcher-kva.example", Name),
            ("256.1.1.1", Nothing),
            ("127.0.0.1.1", Nothing),
            ("0x7f.0.0.0.1", Nothing),
            ("08.8.8.8", Nothing),
            ("1.2.3.0xg", Name),
            ("1.2.0xg.4", Nothing),
            ("4294967296", Nothing),
            ("[fe80::1%25lo]", Nothing),
            ("[fe80::1%lo]", Nothing),
            ("[::ffff:0177.0.0.1]", Nothing),
            ("[::1", Nothing),
            ("::1", Nothing),
            ("[127.0.0.1]", Nothing),
            ("[::127.1]", Nothing),
            ("exa mple", Nothing),
        ] {
            assert_eq!(check(host), expected, "{host}");
        }
    }

    #[test]
    fn only_global_addresses_are_public() {
        let private = [
            "10.255.255.255",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
            "169.254.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::2",
            "::10.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "64:ff9b:1::8.8.8.8",
            "64:ff9b:1:ffff::1",
            "64:ff9b:0:1::8.8.8.8",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:0:a00:1::f7f7:f7f7",
            "2001:0:808:808::80ff:fffe",
            "2001:0:808:808::f5ff:fffe",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2001:db8:ffff::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2002:a9fe:a9fe::1",
            "2002:c0a8:1::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "ff0e::1",
            "1fff::1",
        ];
        let public = [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.1.1",
            "169.255.1.1",
            "172.15.255.255",
            "172.32.0.1",
            "191.255.255.255",
            "192.0.1.1",
            "192.0.3.1",
            "192.88.98.1",
            "192.167.1.1",
            "192.169.1.1",
            "198.17.1.1",
            "198.20.1.1",
            "198.51.99.1",
            "203.0.112.1",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2001:db7::1",
            "2001:db9::1",
            "2002:808:808::1",
            "2001:0:808:808::f7f7:f7f7",
            "2a00:1450::1",
            "3ffe:ffff::1",
            "3fff:1000::1",
            "64:ff9b::8.8.8.8",
            "::ffff:1.1.1.1",
            "::8.8.8.8",
        ];
        for (addresses, expected) in [(&private[..], false), (&public[..], true)] {
            for address in addresses {
                assert_eq!(AddressPolicy::PublicOnly.allows(address.parse().unwrap()), expected, "{address}");
            }
        }
    }

    #[test]
    fn t40_zone_allows_only_its_own_addresses() {
        for (address, expected) in [
            ("127.0.0.1", Some(NetworkZone::Loopback)),
            ("127.255.255.254", Some(NetworkZone::Loopback)),
            ("::1", Some(NetworkZone::Loopback)),
            ("::ffff:127.0.0.1", Some(NetworkZone::Loopback)),
            ("10.0.0.1", Some(NetworkZone::Private)),
            ("10.255.255.255", Some(NetworkZone::Private)),
            ("172.16.0.0", Some(NetworkZone::Private)),
            ("172.31.255.255", Some(NetworkZone::Private)),
            ("192.168.7.7", Some(NetworkZone::Private)),
            ("100.64.0.0", Some(NetworkZone::Private)),
            ("100.127.255.255", Some(NetworkZone::Private)),
            ("::ffff:10.0.0.1", Some(NetworkZone::Private)),
            ("fc00::", Some(NetworkZone::Private)),
            ("fdff::1", Some(NetworkZone::Private)),
            ("169.254.7.7", Some(NetworkZone::LinkLocal)),
            ("fe80::1", Some(NetworkZone::LinkLocal)),
            ("febf::1", Some(NetworkZone::LinkLocal)),
            ("::ffff:169.254.7.7", Some(NetworkZone::LinkLocal)),
            ("169.254.169.254", None),
            ("::ffff:169.254.169.254", None),
            ("100.100.100.200", None),
            ("fd00:ec2::254", None),
            ("0.0.0.0", None),
            ("::", None),
            ("::127.0.0.1", None),
            ("64:ff9b::127.0.0.1", None),
            ("64:ff9b::10.0.0.1", None),
            ("2002:7f00:1::", None),
            ("2002:a00:1::1", None),
            ("fec0::1", None),
            ("192.0.0.192", None),
            ("192.0.2.1", None),
            ("198.18.0.1", None),
            ("224.0.0.1", None),
            ("ff02::1", None),
            ("255.255.255.255", None),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(NetworkZone::from_address(address), expected, "{address}");
            for zone in [NetworkZone::Loopback, NetworkZone::Private, NetworkZone::LinkLocal] {
                assert_eq!(
                    AddressPolicy::PublicAnd(zone).allows(address),
                    expected == Some(zone),
                    "{address} from {zone:?}"
                );
            }
        }
    }

    #[test]
    fn public_addresses_are_allowed_from_every_zone() {
        for address in ["1.1.1.1", "9.9.9.9", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "::ffff:1.1.1.1"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(NetworkZone::from_address(address), None, "{address}");
            for zone in [NetworkZone::Loopback, NetworkZone::Private, NetworkZone::LinkLocal] {
                assert!(AddressPolicy::PublicAnd(zone).allows(address), "{address} from {zone:?}");
            }
        }
    }
}
