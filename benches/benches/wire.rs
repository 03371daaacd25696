//! The codec alone: the processor time per frame.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vmcell_wire::{
    CgroupLimits, Channel, Decoder, Item, PackedStringsBuf, Peer, ProcessMode, Request, Rlimits,
    Start, Stdin, StreamId, encode,
    reset::{ResetKey, Scanned, Scanner},
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
    let mut argv = PackedStringsBuf::new();
    let mut env = PackedStringsBuf::new();
    let packed = argv.push(b"/bin/true") && env.push(b"PATH=/usr/bin:/bin");
    assert!(packed);
    let request = Request::Start(Start {
        ticket: 0x0123_4567_89ab_cdef,
        tag: "exec-1",
        argv: argv.as_packed(),
        env: env.as_packed(),
        default_env: true,
        cwd: b"/workspace",
        make_cwd: false,
        user: "",
        umask: None,
        nice: 0,
        rlimits: Rlimits::default(),
        stdin: Stdin::Empty,
        mode: ProcessMode::Foreground,
        timeout_ms: 0,
        keep: 0,
        limits: CgroupLimits::default(),
    });
    let mut frame = Vec::new();
    criterion.bench_function("encode a start request", |bencher| {
        bencher.iter(|| {
            frame.clear();
            encode::open(black_box(&mut frame), stream, &request)
        });
    });
    let mut decoder = Decoder::new(Peer::Host);
    criterion.bench_function("decode a start request", |bencher| {
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

/// The agent scans every byte of a port for a reset.
fn scan(criterion: &mut Criterion) {
    let key = ResetKey::new([0; 16]).to_bytes();
    let mut group = criterion.benchmark_group("scan");
    group.throughput(Throughput::Bytes(1 << 20));
    let all_values: Vec<u8> = (0..=u8::MAX).cycle().take(1 << 20).collect();
    // The worst case: each byte could begin the key.
    let first_byte_only = vec![key[0]; 1 << 20];
    for (name, bytes) in [
        ("1 MiB of all values", all_values),
        ("1 MiB of the key's first byte", first_byte_only),
    ] {
        let mut scanner = Scanner::new(key);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut input = black_box(&bytes[..]);
                while black_box(scanner.scan(&mut input)) != Scanned::Nothing {}
            });
        });
    }
    group.finish();
}

criterion_group!(benches, request, data, scan);
criterion_main!(benches);
