//! For arbitrary bytes and any split of them, the records of a tree or a watch are the same and
//! hold no more than has arrived; and boot files are read or refused without a panic.
//!
//! The first byte of the input is the size of a piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell_wire::{
    WireError,
    boot::Boot,
    files::{
        TreeRecord,
        record::{Piece, Reader, decode},
    },
    namespaces::Namespaces,
};

fuzz_target!(|input: &[u8]| {
    let Some((&piece, bytes)) = input.split_first() else {
        return;
    };
    let whole = read([bytes]);
    assert_eq!(whole, read(bytes.chunks(usize::from(piece).max(1))));
    let _ = Boot::from_file_with_options(bytes);
    let _ = Namespaces::decode(bytes);
});

/// What a reader returns, independent of how the input was split.
#[derive(Debug, Default, PartialEq)]
struct Read {
    messages: Vec<String>,
    raw: Vec<u8>,
    error: Option<WireError>,
}

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut reader = Reader::new();
    let mut read = Read::default();
    for chunk in chunks {
        let mut input = chunk;
        loop {
            match reader.next(&mut input) {
                Ok(Some(Piece::Message(message))) => {
                    let record = decode::<TreeRecord<'_>>(message);
                    let valid = record.as_ref().is_ok_and(TreeRecord::is_valid);
                    read.messages.push(format!("{record:?} {valid}"));
                }
                Ok(Some(Piece::Raw(raw))) => read.raw.extend(raw),
                Ok(None) => break,
                Err(error) => {
                    read.error = Some(error);
                    return read;
                }
            }
        }
    }
    read
}
