//! The screen model alone: its throughput with the output of real programs.

use std::{fs, hint::black_box, path::Path};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vmcell::terminal::{Screen, TerminalSize};

/// The size of one piece of output, as it arrives over a link.
const PIECE: usize = 64 * 1024;

/// Output that changes as many cells of the largest screen as it can: what it
/// measures, how it begins, and what it repeats.
const HOSTILE: [(&str, &str, &str); 4] = [
    ("hostile: repeat and insert", "\x1b[4h", "x\x1b[999b\x1b[H"),
    ("hostile: insert", "\x1b#8\x1b[4h", "x\r"),
    ("hostile: fill", "", "\x1b[42;1;1;999;999$x"),
    (
        "hostile: scroll between margins",
        "\x1b#8\x1b[?69h\x1b[2;999s\x1b[1000;5H",
        "\n",
    ),
];

/// Returns all recordings, concatenated.
fn recordings() -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/recordings");
    let entries = fs::read_dir(folder).expect("the recordings are in host/tests");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "raw"));
    paths.sort();
    let contents = paths
        .iter()
        .map(|path| fs::read(path).expect("a recording"));
    contents.collect::<Vec<_>>().concat()
}

fn screen(criterion: &mut Criterion) {
    let all = recordings().repeat(8);
    let mut group = criterion.benchmark_group("screen");
    group.throughput(Throughput::Bytes(all.len() as u64));
    group.bench_function("recorded programs", |bencher| {
        bencher.iter(|| Screen::render(TerminalSize::default(), black_box(&all).chunks(PIECE)));
    });
    let text = b"The quick brown fox jumps over the lazy dog.\r\n".repeat(20_000);
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("plain text", |bencher| {
        bencher.iter(|| Screen::render(TerminalSize::default(), black_box(&text).chunks(PIECE)));
    });
    let largest = TerminalSize::clamped(TerminalSize::MAX, TerminalSize::MAX);
    for (name, before, sequence) in HOSTILE {
        let count = PIECE / sequence.len();
        let output = [before.as_bytes(), &sequence.repeat(count).into_bytes()].concat();
        group.throughput(Throughput::Bytes(output.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| Screen::render(largest, black_box(&output).chunks(PIECE)));
        });
    }
    group.finish();

    let screen = Screen::render(TerminalSize::default(), all.chunks(PIECE));
    criterion.bench_function("screen as SVG", |bencher| bencher.iter(|| screen.to_svg()));
    criterion.bench_function("screen as PNG", |bencher| {
        bencher.iter(|| screen.to_picture().to_png());
    });
}

criterion_group!(benches, screen);
criterion_main!(benches);
