//! The exact bytes of the parameters for an agent in namespaces.

use vmcell_wire::namespaces::{IdMapping, Namespaces};

#[test]
fn what_the_host_tells_an_agent_in_namespaces() {
    let single = IdMapping::Single {
        uid: 1000,
        gid: 100,
    };
    let range = IdMapping::Range {
        first: 65536,
        count: 2,
    };
    for (ids, golden) in [
        (single, &[0, 0xe8, 7, 100][..]),
        (range, &[1, 0x80, 0x80, 4, 2]),
    ] {
        let parameters = Namespaces {
            boot_id: [1; 16],
            reset_key: [2; 16],
            hostname: "box",
            directory: b"/a\xff",
            writable_mib: 300,
            ids,
            has_cgroup: true,
        };
        let bytes = parameters.encode().unwrap();
        let expected = [
            &[1; 16][..],
            &[2; 16],
            b"\x03box",
            b"\x03/a\xff",
            &[0xac, 2],
            golden,
            &[1],
        ]
        .concat();
        assert_eq!(bytes, expected);
        assert_eq!(Namespaces::decode(&bytes), Ok(parameters));
        for length in 0..bytes.len() {
            assert!(Namespaces::decode(&bytes[..length]).is_err());
        }
    }
}
