use vmcell_wire::{Capabilities, Request, files::record, network};

use super::{hex, open};

#[test]
fn network() {
    use network::{Answer, NetworkRequest, PREFIX_LEN, Refusal, Target, Want};

    let prefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 0, 104];
    assert_eq!(prefix.len(), PREFIX_LEN);
    let capture = NetworkRequest::Capture { prefixes: &prefix };
    assert_eq!(
        open(Request::Network(capture)),
        "140000000c0b0a0213001100000000000000000000ffff0a00000068"
    );
    let accept = NetworkRequest::Accept { ticket: 300 };
    assert_eq!(open(Request::Network(accept)), "040000000c0b0a021301ac02");
    let name = "a.b";
    let connect = |target| Want::Connect {
        ticket: 300,
        target,
        port: 443,
    };
    for (want, bytes) in [
        (Want::Ready, "0100000000"),
        (Want::Lookup { ticket: 1, name }, "06000000010103612e62"),
        (connect(Target::Name(name)), "0a00000002ac020003612e62bb03"),
        (
            connect(Target::V4([1, 2, 3, 4])),
            "0a00000002ac020101020304bb03",
        ),
        (
            connect(Target::V6([5; 16])),
            "1600000002ac020205050505050505050505050505050505bb03",
        ),
    ] {
        let mut out = Vec::new();
        record::encode(&mut out, &want).unwrap();
        assert_eq!(hex(&out), bytes, "{want:?}");
        assert_eq!(record::decode(&out[record::HEADER..]), Ok(want));
    }
    let refuse = |refusal| Answer::Refuse { ticket: 2, refusal };
    for (answer, bytes) in [
        (Answer::Allow { ticket: 2 }, "020000000002"),
        (refuse(Refusal::NotAllowed), "03000000010200"),
        (refuse(Refusal::Unreachable), "03000000010201"),
        (refuse(Refusal::Limit), "03000000010202"),
    ] {
        let mut out = Vec::new();
        record::encode(&mut out, &answer).unwrap();
        assert_eq!(hex(&out), bytes, "{answer:?}");
        assert_eq!(record::decode(&out[record::HEADER..]), Ok(answer));
    }
    assert_eq!(Capabilities::NETWORK.bits(), 0x800);
}
