//! The screen model alone: its throughput with the output of real programs.

use std::{fs, hint::black_box, path::Path};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vmcell::terminal::{Screen, TerminalSize};

/// The size of one piece of output, as it arrives over a link.
const PIECE: usize = 64 * 1024;

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
    group.finish();

    let screen = Screen::render(TerminalSize::default(), all.chunks(PIECE));
    criterion.bench_function("screen as SVG", |bencher| bencher.iter(|| screen.to_svg()));
    criterion.bench_function("screen as PNG", |bencher| {
        bencher.iter(|| screen.to_picture().to_png());
    });
}

criterion_group!(benches, screen);
criterion_main!(benches);
