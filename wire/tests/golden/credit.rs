use vmcell_wire::{Channel, StreamId, encode};

use super::{frame, hex};

#[test]
fn flow() {
    assert_eq!(frame(encode::cancel), "000000000c0b0a05");
    assert_eq!(frame(encode::ack), "000000000c0b0a06");
    let channels = [Channel::Stdin, Channel::Stdout, Channel::Stderr];
    for (number, channel) in channels.into_iter().enumerate() {
        assert_eq!(
            frame(|out, stream| encode::end(out, stream, channel)),
            format!("000000000c0b0a2{number}")
        );
        assert_eq!(
            frame(|out, stream| encode::credit(out, stream, channel, 0x1234)),
            format!("040000000c0b0a3{number}34120000")
        );
        let header = encode::data_header(StreamId::MAX, channel, 0x40000).unwrap();
        assert_eq!(hex(&header), format!("00000400ffffff1{number}"));
    }
}
