//! The codec alone: what a frame costs in processor time.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vmcell_wire::{
    Channel, Decoder, Exec, Item, PackedBuf, Peer, Request, Stdin, StreamId, encode,
};

fn decode_all(decoder: &mut Decoder, mut input: &[u8]) -> usize {
    let mut bytes_of_data = 0;
    while let Ok(Some(item)) = decoder.decode(&mut input) {
        if let Item::Data { bytes, .. } = item {
            bytes_of_data += bytes.len();
        }
    }
    bytes_of_data
}

fn request(criterion: &mut Criterion) {
    let stream = StreamId::MAX;
    let mut argv = PackedBuf::new();
    let mut env = PackedBuf::new();
    let packed = argv.push(b"/bin/true") && env.push(b"PATH=/usr/bin:/bin");
    assert!(packed);
    let request = Request::Exec(Exec {
        argv: argv.as_packed(),
        env: env.as_packed(),
        cwd: b"/workspace",
        stdin: Stdin::Empty,
    });
    let mut frame = Vec::new();
    criterion.bench_function("encode an exec request", |bencher| {
        bencher.iter(|| {
            frame.clear();
            encode::open(black_box(&mut frame), stream, &request)
        });
    });
    let mut decoder = Decoder::new(Peer::Host);
    criterion.bench_function("decode an exec request", |bencher| {
        bencher.iter(|| decode_all(&mut decoder, black_box(&frame)));
    });
}

fn data(criterion: &mut Criterion) {
    let mut frames = Vec::new();
    for _ in 0..16 {
        if let Ok(header) = encode::data_header(StreamId::MAX, Channel::Stdout, 64 * 1024) {
            frames.extend_from_slice(&header);
            frames.resize(frames.len() + 64 * 1024, 0);
        }
    }
    let mut decoder = Decoder::new(Peer::Guest);
    let mut group = criterion.benchmark_group("data");
    group.throughput(Throughput::Bytes(frames.len() as u64));
    group.bench_function("decode 1 MiB in frames of 64 KiB", |bencher| {
        bencher.iter(|| decode_all(&mut decoder, black_box(&frames)));
    });
    group.finish();
}

criterion_group!(benches, request, data);
criterion_main!(benches);
